"""``report``: what came out, beside what the paper prints."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..layout import WORK_DIR
from ..reference import TOLERANCE
from ..report import write_report
from ..suite import SUITES


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser('report', help='write tables and figures as HTML, Markdown, CSV and LaTeX')
    parser.add_argument('--out', type=Path, metavar='DIR', help='where to (default: report in the folder of runs)')
    parser.add_argument(
        '--suite',
        nargs='+',
        choices=SUITES,
        help="only these (default: the paper's, and every other in which something was run)",
    )
    parser.add_argument('--work-dir', type=Path, default=WORK_DIR, help=f'folder of all runs (default: {WORK_DIR})')
    parser.add_argument(
        '--tolerance', type=float, default=TOLERANCE, metavar='POINTS', help=f'of mIoU (default: {TOLERANCE})'
    )
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> None:
    page, *others = write_report(args.out, args.work_dir, args.suite, args.tolerance)
    print(f'{page} and {len(others)} more files in {page.parent} (Markdown, CSV, LaTeX, SVG).')
