"""``list``: the experiments, and how far each is."""

from __future__ import annotations

import argparse
from collections import Counter

from ...console import render
from ..experiments import EXPERIMENTS
from ..folders import State
from . import selected


def main(args: argparse.Namespace) -> None:
    print(run_table(args) if args.experiment else experiment_table(args))


def experiment_table(args: argparse.Namespace) -> str:
    """One row per experiment."""
    rows = []
    for name, experiment in EXPERIMENTS.items():
        states = Counter(one.state for one in selected(args, [name]))
        rows.append([name, experiment.about, states.total(), *(states[state] for state in State)])
    return render(['Experiment', 'What it shows', 'Runs', *(state.value for state in State)], rows)


def run_table(args: argparse.Namespace) -> str:
    """One row per run."""
    rows = []
    for one in selected(args, args.experiment):
        seconds = one.result and round(one.result.startup_seconds + one.result.seconds)
        cells = one.run.experiment, one.run.name, len(one.run.settings), one.state.value
        rows.append([*cells, seconds, one.error or ''])
    return render(['Experiment', 'Run', 'Settings', 'State', 'Seconds', 'Why'], rows)
