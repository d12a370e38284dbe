"""The commands of tools/reproduce.py. Each module has ``add_parser(commands)``, which sets the parser's ``main``."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..experiments import EXPERIMENTS
from ..layout import WORK_DIR
from ..suite import SUITES


def add_place(parser: argparse.ArgumentParser) -> None:
    """The arguments that say which runs are meant and where they are."""
    parser.add_argument('--suite', choices=SUITES, default='paper', help='the real benchmarks, or a small painted one')
    parser.add_argument('--work-dir', type=Path, default=WORK_DIR, help=f'folder of all runs (default: {WORK_DIR})')


def add_filters(parser: argparse.ArgumentParser) -> None:
    """The arguments that choose among the runs of an experiment."""
    parser.add_argument('--host', nargs='+', default=[], metavar='NAME', help='only these hosts, such as naclip')
    parser.add_argument('--backbone', nargs='+', default=[], metavar='NAME', help='only these, such as vit-b16')
    parser.add_argument('--dataset', nargs='+', default=[], metavar='NAME', help='only these, such as voc21')


def chosen(names: list[str]) -> list[str]:
    """Names of experiments, each once, with ``all`` spelled out."""
    return list(dict.fromkeys(name for given in names for name in (EXPERIMENTS if given == 'all' else [given])))
