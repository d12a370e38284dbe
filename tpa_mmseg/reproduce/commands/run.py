"""``run``: executes what has not been executed yet."""

from __future__ import annotations

import argparse
import sys
from types import ModuleType

from ...console import print_table
from ...engine.config import checked_config, parse_options
from ...engine.data_check import missing_data
from ...errors import TPAError
from ...weights.needs import needs
from ..experiments import planned_images, suite_of
from ..folders import RunView, State
from ..launch import Board, run_here, slots
from ..run import Task
from . import selected


def main(args: argparse.Namespace) -> None:
    args.work_dir = args.work_dir.resolve()
    views, options = selected(args, args.experiment), parse_options(args.cfg_options)
    if not views:
        raise TPAError('No run of these experiments passes --host, --backbone and --dataset: ask for fewer of them.')
    if not args.rerun:
        _refuse_other_settings(views, options)
    todo = [one for one in views if one.state is not State.RUNNING and (args.rerun or one.state is not State.DONE)]
    # Costs are times: they are measured last and alone.
    todo = sorted(todo, key=lambda one: one.run.experiment == 'cost')[: args.limit or None]
    places = slots(args.gpus, args.processes) if args.launcher == 'local' else None
    print(f'{_count(views)}; {len(todo)} to run with {sum(planned_images(one.run) for one in todo):,} images.')
    board = Board([Task(one.run, args.work_dir, options) for one in todo])
    costs = [task for task in board.tasks if task.run.experiment == 'cost']
    groups = [board.tasks[: len(todo) - len(costs)], costs]
    if args.dry_run:
        _print_dry_run(args, board.tasks)
    elif todo and places:
        _reset(todo)
        with board.bar:
            for tasks, where in zip(groups, (places, slots(args.gpus, 1)[:1]), strict=True):
                run_here(tasks, where, board)
            board.look()
        _conclude(args, board)
    elif todo:
        _run_slurm(args, todo, list(filter(None, groups)), board)


def _count(views: list[RunView]) -> str:
    running = sum(one.state is State.RUNNING for one in views)
    done = f'{sum(one.state is State.DONE for one in views)} of {len(views)} runs are done'
    return f'{done}, {running} running elsewhere' if running else done


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


def _print_dry_run(args: argparse.Namespace, tasks: list[Task]) -> None:
    rows = [
        [task.run.experiment, task.run.name, len(task.run.settings), planned_images(task.run), _missing(task)]
        for task in tasks
    ]
    print_table(['Experiment', 'Run', 'Settings', 'Images', 'Missing'], rows)
    if args.launcher == 'slurm':
        options = _slurm().parameters(args)
        options |= options.pop('additional_parameters')
        print_table(['Slurm option', 'Value'], [[key, str(value)] for key, value in options.items()])


def _missing(task: Task) -> str:
    """Names the data and weights that a run needs and that are not on this machine."""
    suite = suite_of(task.run.suite)
    try:
        cfg = checked_config(suite.config(task.run), options=task.cfg_options)
    except TPAError as error:
        return str(error)
    encoders = [suite.encoders.get(setting.encoder) for setting in task.run.settings]
    weights = [need.source.title for need in needs([cfg.model, *encoders]) if need.source.locate() is None]
    places = filter(None, [missing_data(cfg.test_dataloader.dataset)])
    return ', '.join(dict.fromkeys([*map(str, places), *weights])) or 'nothing'


def _reset(todo: list[RunView]) -> None:
    """Forgets errors and sets results aside, of what was seen and will be run: others may be finished any moment."""
    for one in todo:
        if one.state in (State.DONE, State.FAILED):
            one.folder.reset()


def _run_slurm(args: argparse.Namespace, todo: list[RunView], groups: list[list[Task]], board: Board) -> None:
    slurm, jobs = _slurm(), []
    for tasks in groups:
        jobs.append(slurm.submit(tasks, slurm.parameters(args), args.work_dir / args.suite / 'slurm', jobs[:1]))
    # After the submission, which may fail; a task takes longer to start than this.
    _reset(todo)
    print(f'Slurm job {", ".join(jobs)}: {len(todo)} tasks. They go on if this command is interrupted.', flush=True)
    if args.wait:
        with board.bar:
            slurm.watch(jobs, board)
        _conclude(args, board)


def _slurm() -> ModuleType:
    try:
        from .. import slurm
    except ModuleNotFoundError as error:
        raise TPAError("Slurm needs submitit. Install it with: pip install 'tpa_mmseg[reproduce]'") from error
    return slurm


def _conclude(args: argparse.Namespace, board: Board) -> None:
    """Prints what came of the runs. The exit code is 1 if one failed."""
    views = [task.view() for task in board.tasks]
    failed = [one for one in views if one.state is State.FAILED]
    print(f'{_count(views)}, {len(failed)} failed; results are in {args.work_dir / args.suite}.')
    for one in failed:
        print(f'failed: {one.run.experiment} {one.run.name}: {one.error}', file=sys.stderr)
    if failed:
        sys.exit(1)
