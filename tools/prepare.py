#!/usr/bin/env python
"""Prepares the datasets from the archives as their sites ship them, and checks what is prepared."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tpa_mmseg.console import print_table
from tpa_mmseg.engine.cli import run_tool
from tpa_mmseg.errors import TPAError
from tpa_mmseg.prepare import LAYOUTS, WORKERS, Report, check, is_there, prepare


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, epilog='docs/data.md describes the datasets.')
    commands = parser.add_subparsers(dest='command', required=True, metavar='DATASET | check')
    for name, layout in LAYOUTS.items():
        command = commands.add_parser(name, help=f'prepare {layout.title} from {layout.archives}')
        command.add_argument(
            '--source',
            nargs='+',
            required=True,
            metavar='PATH',
            help=f'{layout.archives}, or the folders they were unpacked to',
        )
        command.add_argument('--out', metavar='DIR', help=f'its folder (default: {layout.folder} in the data root)')
        command.add_argument('--all', action='store_true', help='prepare the training split as well')
        kind = command.add_mutually_exclusive_group()
        kind.add_argument('--copy', action='store_true', help='copy images that lie in a folder (default)')
        kind.add_argument('--link', action='store_true', help='make links to images that lie in a folder')
        add_common_arguments(command)
    command = commands.add_parser('check', help='check what is prepared')
    command.add_argument('datasets', nargs='*', metavar='DATASET', help='what to check (default: all that is there)')
    add_common_arguments(command)
    return parser.parse_args()


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    root = os.environ.get('TPA_DATA', 'data')
    parser.add_argument(
        '--data-root', default=root, metavar='DIR', help=f'folder of all datasets (default: $TPA_DATA, now {root})'
    )
    parser.add_argument('--workers', type=int, default=WORKERS, metavar='N', help=f'threads (default: {WORKERS})')


def main() -> None:
    args = parse_args()
    if args.workers < 1:
        raise TPAError(f'--workers must be at least 1, not {args.workers}.')
    if args.command == 'check':
        sys.exit(run_checks(args))
    layout = LAYOUTS[args.command]
    out = Path(args.out or Path(args.data_root) / layout.folder)
    result = prepare(args.command, args.source, out, args.workers, args.link, args.all)
    print(f'{layout.title}: {result.images} test images in {out}, {result.written} files written now.')
    if result.images not in layout.counts:
        expected = ' or '.join(map(str, layout.counts))
        print(f'Warning: the benchmark has {expected} test images, so a source is incomplete or another one.')


def run_checks(args: argparse.Namespace) -> int:
    """Checks datasets and prints what was found. Returns the exit code."""
    unknown = [name for name in args.datasets if name not in LAYOUTS]
    if unknown:
        raise TPAError(f'There is no dataset {unknown[0]}: choose of {", ".join(LAYOUTS)}.')
    folders = {name: Path(args.data_root) / LAYOUTS[name].folder for name in args.datasets or LAYOUTS}
    # Without names, a dataset that nobody has prepared is nothing wrong.
    absent = [name for name, folder in folders.items() if not args.datasets and not is_there(name, folder)]
    reports = [check(name, folder, args.workers) for name, folder in folders.items() if name not in absent]
    if not reports:
        raise TPAError(f'There is no dataset in {args.data_root}: prepare one, or name the folder with --data-root.')
    print_table(['dataset', 'folder', 'images', 'labels', 'state'], [summary(report) for report in reports])
    if absent:
        print(f'Not there: {", ".join(absent)}.')
    wrong = [report for report in reports if report.findings]
    if wrong:
        rows = [(report.dataset, f.what, f.count, f.first, f.mend) for report in wrong for f in report.findings]
        print()
        print_table(['dataset', 'what is wrong', 'how many', 'first', 'what to do'], rows)
    for report in wrong:
        sources = LAYOUTS[report.dataset].archives
        print(f'To prepare it: python tools/prepare.py {report.dataset} --source {sources} --out {report.folder}')
    return 1 if wrong else 0


def summary(report: Report) -> tuple:
    state = (
        f'{len(report.findings)} things wrong' if report.findings else f'fine{report.origin and ", "}{report.origin}'
    )
    return LAYOUTS[report.dataset].title, str(report.folder), report.images, report.labels, state


if __name__ == '__main__':
    run_tool(main)
