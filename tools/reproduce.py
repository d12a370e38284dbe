#!/usr/bin/env python
"""Reproduces the tables and figures of the paper: run experiments, collect, check, compare and report their results."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path

from tpa_tools.command import add_cfg_options, add_launch_options, run_tool

WORK_DIR = Path('work_dirs/reproduce')
TOLERANCE = 1.5


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    add_list(commands.add_parser('list', help='the experiments and their runs, and how far they are'))
    add_run(commands.add_parser('run', help='execute experiments; what is done is not run again'))
    add_report(commands.add_parser('report', help='write tables and figures: a page, Markdown, CSV, LaTeX, SVG, PDF'))
    add_check(commands.add_parser('check', help='fail where a finished run is too far from the paper'))
    add_collect(commands.add_parser('collect', help='gather all results in one small file'))
    add_compare(commands.add_parser('compare', help='set two files of results, or one and the paper, side by side'))
    run_tool(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    from tpa_mmseg.errors import TPAError

    try:
        commands = importlib.import_module('tpa_mmseg.reproduce.commands')
        getattr(commands, args.command)(args)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith('tpa_mmseg'):
            raise
        raise TPAError(f"This needs {error.name}. Install it with: pip install 'tpa_mmseg[reproduce]'") from error


def add_list(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command='list_runs')
    parser.add_argument('experiment', nargs='*', help='show every run of these (or all); by default only numbers')
    add_place(parser)
    add_filters(parser)
    add_comparisons(parser)


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command='run')
    parser.add_argument('experiment', nargs='+', help='names that list shows, or all')
    add_place(parser)
    add_filters(parser)
    add_comparisons(parser)
    add_cfg_options(parser, 'settings that replace those of all configs, e.g. test_dataloader.num_workers=8')
    add_launch_options(parser, 'run', check=True)


def add_report(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command='report')
    parser.add_argument('--out', type=Path, metavar='DIR', help='where to (default: report in the folder of runs)')
    parser.add_argument(
        '--suite',
        nargs='+',
        metavar='NAME',
        help="only these (default: the paper's, and every other in which something was run)",
    )
    parser.add_argument(
        '--figures',
        nargs='*',
        choices=('svg', 'png', 'pdf'),
        default=['svg', 'png', 'pdf'],
        help='formats of the files of figures (default: all; none: only those on the page)',
    )
    parser.add_argument(
        '--classes',
        nargs='+',
        default=[],
        metavar='RUN',
        help='runs of the main table to show class by class, such as naclip_vit-b16_ade20k',
    )
    add_work_dir(parser)
    add_results(parser)
    add_tolerance(parser)


def add_collect(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command='collect')
    parser.add_argument('out', type=Path, metavar='FILE', help='results.jsonl (JSON lines) or results.parquet')
    parser.add_argument('--suite', nargs='+', metavar='NAME', help='only these (default: all)')
    add_work_dir(parser)


def add_compare(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command='compare')
    for name in ('a', 'b'):
        parser.add_argument(name, metavar=name.upper(), help='file of results, work directory, or paper')
    parser.add_argument(
        '--tolerance', type=float, default=0.0, metavar='POINTS', help='differences of mIoU to ignore (default: 0)'
    )
    parser.add_argument('--out', type=Path, metavar='FILE', help='write every number of both as CSV')


def add_check(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command='check')
    parser.add_argument('experiment', nargs='*', default=['all'], help='only these experiments')
    add_place(parser)
    add_results(parser)
    add_filters(parser)
    add_tolerance(parser)


def add_place(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that say which runs are meant and where they are."""
    parser.add_argument(
        '--suite', default='paper', metavar='NAME', help='paper, the real benchmarks (default), or miniature'
    )
    add_work_dir(parser)


def add_work_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--work-dir', type=Path, default=WORK_DIR, help=f'folder of all runs (default: {WORK_DIR})')


def add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--results', type=Path, metavar='FILE', help='a file that collect wrote, instead of --work-dir')


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that choose among the runs of an experiment."""
    parser.add_argument('--host', nargs='+', default=[], metavar='NAME', help='only these hosts, such as naclip')
    parser.add_argument('--backbone', nargs='+', default=[], metavar='NAME', help='only these, such as vit-b16')
    parser.add_argument('--dataset', nargs='+', default=[], metavar='NAME', help='only these, such as voc21')


def add_comparisons(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--with-comparisons', action='store_true', help="also the rows of other methods in the paper's tables"
    )


def add_tolerance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--tolerance', type=float, default=TOLERANCE, metavar='POINTS', help=f'of mIoU (default: {TOLERANCE})'
    )


if __name__ == '__main__':
    main()
