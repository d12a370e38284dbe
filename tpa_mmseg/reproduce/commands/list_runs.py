"""``list``: the experiments, and how far each is."""

from __future__ import annotations

import argparse
from collections import Counter

from ...console import render
from ..experiments import EXPERIMENTS, plan
from ..layout import State, view
from . import chosen


def main(args: argparse.Namespace) -> None:
    if args.experiment:
        print(run_table(args))
    else:
        print(experiment_table(args))


def _runs(name: str, args: argparse.Namespace) -> list:
    return plan(name, args.suite, args.host, args.backbone, args.dataset)


def experiment_table(args: argparse.Namespace) -> str:
    """One row per experiment."""
    rows = []
    for name, experiment in EXPERIMENTS.items():
        runs = _runs(name, args)
        states = Counter(view(run, args.work_dir).state for run in runs)
        rows.append([name, experiment.about, len(runs), *(states[state] for state in State)])
    return render(['Experiment', 'What it shows', 'Runs', *(state.value for state in State)], rows)


def run_table(args: argparse.Namespace) -> str:
    """One row per run."""
    rows = []
    for name in chosen(args.experiment):
        for run in _runs(name, args):
            found = view(run, args.work_dir)
            rows.append([name, run.name, len(run.settings), found.state.value, found.error or ''])
    return render(['Experiment', 'Run', 'Settings', 'State', 'Why'], rows)
