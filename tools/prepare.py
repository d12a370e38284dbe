#!/usr/bin/env python
"""Prepares the datasets from their official archives, and checks prepared datasets."""

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

#: Dataset -> its benchmarks and archives. A copy of ``tpa_mmseg.prepare.LAYOUTS`` that costs no import; a test compares
#: them.
DATASETS = {
    'voc': (('voc21', 'voc20'), 'VOCtrainval_11-May-2012.tar'),
    'context': (('context60', 'context59'), 'VOCtrainval_03-May-2010.tar trainval_merged.json'),
    'coco_stuff': (('coco_stuff164k',), 'val2017.zip stuffthingmaps_trainval2017.zip'),
    'coco_object': (('coco_object',), 'val2017.zip stuffthingmaps_trainval2017.zip'),
    'cityscapes': (('cityscapes',), 'leftImg8bit_trainvaltest.zip gtFine_trainvaltest.zip'),
    'ade20k': (('ade20k',), 'ADEChallengeData2016.zip'),
}
# Those of tpa_mmseg.prepare.Limits, in MB.
FILE_MB, JSON_MB = 64.0, 2048.0
WORKERS = min(8, os.cpu_count() or 1)


def parse_args(argv: Sequence[str] | None, prog: str | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog, description=__doc__, epilog='See docs/data.md for details.')
    commands = parser.add_subparsers(dest='command', required=True, metavar='DATASET | check')
    for name, (benchmarks, archives) in DATASETS.items():
        aliases = [benchmark for benchmark in benchmarks if benchmark != name]
        command = commands.add_parser(name, aliases=aliases, help=f'prepare it from {archives}')
        command.add_argument(
            '--source',
            nargs='+',
            required=True,
            metavar='PATH',
            help=f'{archives}, or the folders they were unpacked to',
        )
        command.add_argument('--out', metavar='DIR', help='output folder (default: its folder in the data root)')
        command.add_argument('--with-train', action='store_true', help='prepare the training split too')
        command.add_argument(
            '--symlink', action='store_true', help='symlink images that are in a folder instead of copying them'
        )
        for option, what, limit in (('file', 'image or label', FILE_MB), ('json', 'annotation file', JSON_MB)):
            command.add_argument(
                f'--max-{option}-mb',
                type=float,
                default=limit,
                metavar='MB',
                help=f'largest {what} that is read (default: {limit:g})',
            )
        add_common_arguments(command)
    command = commands.add_parser('check', help='check prepared datasets')
    command.add_argument(
        'datasets', nargs='*', metavar='DATASET', help='datasets to check (default: all in the data root)'
    )
    add_common_arguments(command)
    return parser.parse_args(argv)


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    root = os.environ.get('TPA_DATA', 'data')
    parser.add_argument(
        '--data-root',
        default=root,
        metavar='DIR',
        help=f'folder of all datasets (default: $TPA_DATA, currently {root})',
    )
    parser.add_argument(
        '--workers', type=int, default=WORKERS, metavar='N', help=f'number of threads (default: {WORKERS})'
    )


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    run_tool(run, parse_args(argv, prog))


def run(args: argparse.Namespace) -> None:
    from tpa_mmseg.errors import TPAError
    from tpa_mmseg.prepare import LAYOUTS, Limits, dataset_of, prepare

    if args.workers < 1:
        raise TPAError(f'--workers must be at least 1, got {args.workers}.')
    if args.command == 'check':
        sys.exit(run_checks(args))
    layout = LAYOUTS[dataset_of(args.command)]
    out = Path(args.out or Path(args.data_root) / layout.folder)
    limits = Limits(args.max_file_mb, args.max_json_mb)
    prepared = prepare(args.command, args.source, out, args.workers, args.symlink, args.with_train, limits)
    print(f'{layout.title}: {prepared.images:,} test images in {out}, {prepared.written:,} files written.')
    if prepared.images not in layout.counts:
        expected = ' or '.join(f'{count:,}' for count in layout.counts)
        print(f'Warning: expected {expected} test images. A source is incomplete or belongs to another dataset.')


def run_checks(args: argparse.Namespace) -> int:
    """Checks datasets and prints the findings. Returns the exit code."""
    from tpa_mmseg.console import print_table
    from tpa_mmseg.errors import TPAError
    from tpa_mmseg.prepare import LAYOUTS, check, dataset_of, exists

    names = dict.fromkeys(dataset_of(name) for name in args.datasets) or LAYOUTS
    folders = {name: Path(args.data_root) / LAYOUTS[name].folder for name in names}
    # Only a dataset that was asked for by name has to exist.
    absent = [name for name, folder in folders.items() if not args.datasets and not exists(name, folder)]
    reports = [check(name, folder, args.workers) for name, folder in folders.items() if name not in absent]
    if not reports:
        raise TPAError(f'No datasets in {args.data_root}. Prepare one, or set --data-root.')
    rows = [(LAYOUTS[report.dataset].title, *summary(report)) for report in reports]
    print_table(['Dataset', 'Folder', 'Images', 'Labels', 'Status'], rows)
    if absent:
        print(f'Not prepared: {", ".join(absent)}.')
    failed = [report for report in reports if report.findings]
    if failed:
        rows = [(report.dataset, f.what, f.count, f.first, f.fix) for report in failed for f in report.findings]
        print()
        print_table(['Dataset', 'Problem', 'Count', 'First case', 'Fix'], rows)
        print('\nCommands to prepare them:')
    for report in failed:
        sources = LAYOUTS[report.dataset].archives
        print(f'  python tools/prepare.py {report.dataset} --source {sources} --out {report.folder}')
    return 1 if failed else 0


def summary(report: Report) -> tuple:
    found = len(report.findings)
    status = f'{found} problem{"s" if found > 1 else ""}' if found else ', '.join(filter(None, ['OK', report.origin]))
    return str(report.folder), report.images, report.labels, status


if __name__ == '__main__':
    main()
