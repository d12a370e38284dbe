#!/usr/bin/env python
"""Prepares the datasets from the archives as their sites ship them, and checks what is prepared."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tpa_tools.command import run_tool

if TYPE_CHECKING:
    from tpa_mmseg.prepare import Report

#: Dataset -> its archives. A copy of ``tpa_mmseg.prepare.LAYOUTS`` that costs no import; a test compares them.
DATASETS = {
    'voc': 'VOCtrainval_11-May-2012.tar',
    'context': 'VOCtrainval_03-May-2010.tar trainval_merged.json',
    'coco_stuff': 'val2017.zip stuffthingmaps_trainval2017.zip',
    'coco_object': 'val2017.zip stuffthingmaps_trainval2017.zip',
    'cityscapes': 'leftImg8bit_trainvaltest.zip gtFine_trainvaltest.zip',
    'ade20k': 'ADEChallengeData2016.zip',
}
WORKERS = min(8, os.cpu_count() or 1)


def parse_args(argv: Sequence[str] | None, prog: str | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog, description=__doc__, epilog='docs/data.md describes the datasets.')
    commands = parser.add_subparsers(dest='command', required=True, metavar='DATASET | check')
    for name, archives in DATASETS.items():
        command = commands.add_parser(name, help=f'prepare it from {archives}')
        command.add_argument(
            '--source',
            nargs='+',
            required=True,
            metavar='PATH',
            help=f'{archives}, or the folders they were unpacked to',
        )
        command.add_argument('--out', metavar='DIR', help='its folder (default: the one of the configs)')
        command.add_argument('--all', action='store_true', help='prepare the training split as well')
        kind = command.add_mutually_exclusive_group()
        kind.add_argument('--copy', action='store_true', help='copy images that lie in a folder (default)')
        kind.add_argument('--link', action='store_true', help='make links to images that lie in a folder')
        add_common_arguments(command)
    command = commands.add_parser('check', help='check what is prepared')
    command.add_argument('datasets', nargs='*', metavar='DATASET', help='what to check (default: all that is there)')
    add_common_arguments(command)
    return parser.parse_args(argv)


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    root = os.environ.get('TPA_DATA', 'data')
    parser.add_argument(
        '--data-root', default=root, metavar='DIR', help=f'folder of all datasets (default: $TPA_DATA, now {root})'
    )
    parser.add_argument('--workers', type=int, default=WORKERS, metavar='N', help=f'threads (default: {WORKERS})')


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    run_tool(run, parse_args(argv, prog))


def run(args: argparse.Namespace) -> None:
    from tpa_mmseg.errors import TPAError
    from tpa_mmseg.prepare import LAYOUTS, prepare

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
    from tpa_mmseg.errors import TPAError
    from tpa_mmseg.evaluation.table import render
    from tpa_mmseg.prepare import LAYOUTS, check, is_there

    unknown = [name for name in args.datasets if name not in LAYOUTS]
    if unknown:
        raise TPAError(f'There is no dataset {unknown[0]}: choose of {", ".join(LAYOUTS)}.')
    folders = {name: Path(args.data_root) / LAYOUTS[name].folder for name in args.datasets or LAYOUTS}
    # Without names, a dataset that nobody has prepared is nothing wrong.
    absent = [name for name, folder in folders.items() if not args.datasets and not is_there(name, folder)]
    reports = [check(name, folder, args.workers) for name, folder in folders.items() if name not in absent]
    if not reports:
        raise TPAError(f'There is no dataset in {args.data_root}: prepare one, or name the folder with --data-root.')
    print(render(['dataset', 'folder', 'images', 'labels', 'state'], [summary(report) for report in reports]))
    if absent:
        print(f'Not there: {", ".join(absent)}.')
    wrong = [report for report in reports if report.findings]
    if wrong:
        rows = [(report.dataset, f.what, f.count, f.first, f.fix) for report in wrong for f in report.findings]
        print('\n' + render(['dataset', 'what is wrong', 'how many', 'first', 'what to do'], rows))
    for report in wrong:
        sources = LAYOUTS[report.dataset].archives
        print(f'To prepare it: python tools/prepare.py {report.dataset} --source {sources} --out {report.folder}')
    return 1 if wrong else 0


def summary(report: Report) -> tuple:
    from tpa_mmseg.prepare import LAYOUTS

    state = (
        f'{len(report.findings)} things wrong' if report.findings else f'fine{report.origin and ", "}{report.origin}'
    )
    return LAYOUTS[report.dataset].title, str(report.folder), report.images, report.labels, state


if __name__ == '__main__':
    main()
