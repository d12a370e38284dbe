#!/usr/bin/env python
"""Opens a local page: drop pictures, type classes, move the settings of TPA and see what changes."""

from __future__ import annotations

import argparse

from tpa_mmseg.engine.cli import run_tool
from tpa_mmseg.webapp import Address, serve
from tpa_mmseg.webapp.limits import Limits


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        '--address',
        default=Address.host,
        help='where to listen (default: %(default)s, which only this machine can reach)',
    )
    parser.add_argument('--port', type=int, default=Address.port, help='(default: %(default)s)')
    parser.add_argument('--device', help='such as cuda:1 (default: the best there is)')
    parser.add_argument('--max-images', type=int, default=Limits.images, help='pictures at once (default: %(default)s)')
    parser.add_argument('--max-mb', type=float, default=Limits.megabytes, help='size of a file (default: %(default)s)')
    parser.add_argument('--no-browser', action='store_true', help='do not open a browser')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    limits = Limits(images=args.max_images, megabytes=args.max_mb)
    serve(Address(args.address, args.port), limits, args.device, show=not args.no_browser)


if __name__ == '__main__':
    run_tool(main)
