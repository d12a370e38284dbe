"""The commands of tools/reproduce.py, which has their arguments: each module has ``main(args)``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from ..experiments import EXPERIMENTS, plan
from ..folders import RunView, view


def selected(args: argparse.Namespace, experiments: Iterable[str]) -> list[RunView]:
    """Returns the runs of some experiments (or of ``all``) that pass the filters of the command line."""
    names = dict.fromkeys(name for given in experiments for name in (EXPERIMENTS if given == 'all' else [given]))
    filters = args.host, args.backbone, args.dataset
    return [view(run, args.work_dir) for name in names for run in plan(name, args.suite, *filters)]
