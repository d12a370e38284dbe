"""``run``: executes what has not been executed yet."""

from __future__ import annotations

import argparse
import sys

from ...engine.config import parse_options
from ...errors import TPAError
from ...launch import LaunchOptions, State, launch
from ..folders import RunView
from ..run import RunTask
from . import selected


def main(args: argparse.Namespace) -> None:
    work_dir = args.work_dir.resolve()
    views, options = selected(args, args.experiment), parse_options(args.cfg_options)
    if not views:
        raise TPAError('No run of these experiments passes --host, --backbone and --dataset: ask for fewer of them.')
    if not args.rerun:
        _refuse_other_settings(views, options)
    tasks = [RunTask(one.run, work_dir, options) for one in views]
    states = launch(tasks, LaunchOptions.of(args), work_dir / args.suite)
    if states[State.FAILED] and args.wait and not args.dry_run:
        sys.exit(1)


def _refuse_other_settings(views: list[RunView], cfg_options: dict) -> None:
    """Raises TPAError if a run was done with other settings: its results cannot be mixed with those of these."""
    others = [one for one in views if one.result is not None and not one.result.made_with(cfg_options)]
    if others:
        first = others[0]
        settings = ' '.join(f'{key}={value}' for key, value in first.result.cfg_options.items()) or 'none'
        raise TPAError(
            f'{len(others)} of these runs were done with other --cfg-options ({first.run.experiment} {first.run.name}: '
            f'{settings}): give the same ones, repeat the runs with --rerun, or use another --work-dir.'
        )
