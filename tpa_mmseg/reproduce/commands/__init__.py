"""The commands of tools/reproduce.py, which has their arguments: each module has ``main(args)``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from ..experiments import EXPERIMENTS, plan
from ..folders import RunView
from ..sources import Source


def selected(args: argparse.Namespace, experiments: Iterable[str]) -> list[RunView]:
    """Returns the runs of some experiments (or of ``all``) that pass the filters of the command line."""
    names = dict.fromkeys(name for given in experiments for name in (EXPERIMENTS if given == 'all' else [given]))
    filters, source = (args.host, args.backbone, args.dataset), source_of(args)
    # A command without the option looks at everything that there may be.
    comparisons = getattr(args, 'with_comparisons', True)
    return [source.view(run) for name in names for run in plan(name, args.suite, *filters, comparisons)]


def source_of(args: argparse.Namespace) -> Source:
    """Returns where the results are: in ``--results`` if the command has it, else in ``--work-dir``."""
    return Source(getattr(args, 'results', None) or args.work_dir)
