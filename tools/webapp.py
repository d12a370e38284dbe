#!/usr/bin/env python
"""Opens a local page: upload images, enter class names, move the settings of TPA and see what changes."""

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
    parser.add_argument(
        '--token',
        nargs='?',
        const='',
        metavar='SECRET',
        help='let only visitors in who have this secret, a random one if none is given (default: a random one if '
        'others can reach the address)',
    )
    parser.add_argument('--no-token', action='store_true', help='let everyone in who reaches the address')
    parser.add_argument('--device', help='torch device, e.g. cuda:1 (default: CUDA if available)')
    parser.add_argument('--max-images', type=int, default=16, help='most images (default: %(default)s)')
    parser.add_argument('--max-mb', type=float, default=16, help='largest size of a file in MB (default: %(default)s)')
    parser.add_argument('--max-visitors', type=int, default=8, help='most visitors at once (default: %(default)s)')
    parser.add_argument('--no-browser', action='store_true', help='do not open a browser')
    run_tool(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    import secrets

    from tpa_mmseg.webapp import serve
    from tpa_mmseg.webapp.limits import Limits

    limits = Limits(images=args.max_images, megabytes=args.max_mb, visitors=args.max_visitors)
    token = '' if args.no_token else secrets.token_urlsafe(24) if args.token == '' else args.token
    serve(args.address, args.port, limits, args.device, not args.no_browser, token)


if __name__ == '__main__':
    main()
