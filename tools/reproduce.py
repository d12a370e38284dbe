#!/usr/bin/env python
"""Reproduces the tables and figures of the paper: run experiments, see how far they are, check and report them."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from pathlib import Path

from tpa_tools.command import KeyValues, add_cfg_options, run_tool

WORK_DIR = Path('work_dirs/reproduce')
TOLERANCE = 1.5


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    add_list(commands.add_parser('list', help='the experiments and their runs, and how far they are'))
    add_run(commands.add_parser('run', help='execute experiments; what is done is not run again'))
    add_report(commands.add_parser('report', help='write tables and figures as HTML, Markdown, CSV and LaTeX'))
    add_check(commands.add_parser('check', help='fail where a finished run is too far from the paper'))
    run_tool(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    importlib.import_module(f'tpa_mmseg.reproduce.commands.{args.module}').main(args)


def add_list(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(module='list_runs')
    parser.add_argument('experiment', nargs='*', help='show every run of these (or all); by default only numbers')
    add_place(parser)
    add_filters(parser)


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(module='run')
    parser.add_argument('experiment', nargs='+', help='names that list shows, or all')
    add_place(parser)
    add_filters(parser)
    parser.add_argument(
        '--launcher', choices=('local', 'slurm'), default='local', help='this machine (default), or one Slurm job array'
    )
    parser.add_argument(
        '--gpus', type=int, metavar='N', help='at most N runs at a time, one per GPU (default: all GPUs)'
    )
    parser.add_argument(
        '--processes', type=int, default=1, metavar='N', help='without GPUs: at most N runs at a time (default: 1)'
    )
    parser.add_argument(
        '--check',
        '--dry-run',
        dest='dry_run',
        action='store_true',
        help='run nothing: check every config, and show what would be run and what is missing for it',
    )
    parser.add_argument('--rerun', action='store_true', help='run what is done again; keeps results.old.json')
    parser.add_argument('--limit', type=int, default=0, metavar='N', help='at most N runs')
    add_cfg_options(parser, 'settings that replace those of all configs, e.g. test_dataloader.num_workers=8')
    add_slurm(parser.add_argument_group('Slurm'))


def add_slurm(group: argparse._ArgumentGroup) -> None:
    """Adds the options of the job array."""
    for name in ('partition', 'account', 'qos', 'constraint'):
        group.add_argument(f'--{name}', metavar='NAME')
    group.add_argument('--time', type=int, default=720, metavar='MINUTES', help='time limit of a run (default: 720)')
    group.add_argument('--mem', metavar='SIZE', help='memory of a run, e.g. 32GB')
    group.add_argument(
        '--slurm', nargs='+', action=KeyValues, default=[], metavar='KEY=VALUE', help='more, e.g. gres=gpu:a100:1'
    )
    group.add_argument('--no-wait', dest='wait', action='store_false', help='submit and return')


def add_report(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(module='report')
    parser.add_argument('--out', type=Path, metavar='DIR', help='where to (default: report in the folder of runs)')
    parser.add_argument(
        '--suite',
        nargs='+',
        metavar='NAME',
        help="only these (default: the paper's, and every other in which something was run)",
    )
    parser.add_argument('--work-dir', type=Path, default=WORK_DIR, help=f'folder of all runs (default: {WORK_DIR})')
    add_tolerance(parser)


def add_check(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(module='check')
    parser.add_argument('experiment', nargs='*', default=['all'], help='only these experiments')
    add_place(parser)
    add_filters(parser)
    add_tolerance(parser)


def add_place(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that say which runs are meant and where they are."""
    parser.add_argument(
        '--suite', default='paper', metavar='NAME', help='paper, the real benchmarks (default), or miniature'
    )
    parser.add_argument('--work-dir', type=Path, default=WORK_DIR, help=f'folder of all runs (default: {WORK_DIR})')


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that choose among the runs of an experiment."""
    parser.add_argument('--host', nargs='+', default=[], metavar='NAME', help='only these hosts, such as naclip')
    parser.add_argument('--backbone', nargs='+', default=[], metavar='NAME', help='only these, such as vit-b16')
    parser.add_argument('--dataset', nargs='+', default=[], metavar='NAME', help='only these, such as voc21')


def add_tolerance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--tolerance', type=float, default=TOLERANCE, metavar='POINTS', help=f'of mIoU (default: {TOLERANCE})'
    )


if __name__ == '__main__':
    main()
