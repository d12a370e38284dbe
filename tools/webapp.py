#!/usr/bin/env python
"""Opens a local page: drop images, enter class names, move the settings of TPA and see what changes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tpa_tools.command import run_tool


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    parser.add_argument(
        '--address',
        default='127.0.0.1',
        help='address to listen on (default: %(default)s, which only this machine can reach)',
    )
    parser.add_argument('--port', type=int, default=8080, help='(default: %(default)s)')
    parser.add_argument('--device', help='torch device, e.g. cuda:1 (default: CUDA if available)')
    parser.add_argument('--max-images', type=int, default=16, help='most images (default: %(default)s)')
    parser.add_argument('--max-mb', type=float, default=16, help='largest size of a file in MB (default: %(default)s)')
    parser.add_argument('--no-browser', action='store_true', help='do not open a browser')
    run_tool(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    from tpa_mmseg.webapp import Address, serve
    from tpa_mmseg.webapp.limits import Limits

    limits = Limits(images=args.max_images, megabytes=args.max_mb)
    serve(Address(args.address, args.port), limits, args.device, show=not args.no_browser)


if __name__ == '__main__':
    main()
