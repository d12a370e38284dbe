"""``run``: executes what has not been executed yet."""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace

from ...console import render
from ...engine.config import parse_options
from ...errors import TPAError
from ..board import Board
from ..estimate import Estimator, duration
from ..experiments import planned_images, suite_of
from ..layout import RunFolder, RunView, State, view
from ..runs import Run
from ..slurm import batch_of_this_job, script, submit
from ..supervisor import Supervisor, worker_environments
from ..worker import Task
from . import chosen


def main(args: argparse.Namespace) -> None:
    task = Task(
        experiments=tuple(chosen(args.experiment)),
        suite=args.suite,
        work_dir=args.work_dir,
        batch=batch_of_this_job() or uuid.uuid4().hex[:12],
        hosts=tuple(args.host),
        backbones=tuple(args.backbone),
        benchmarks=tuple(args.dataset),
        cfg_options=parse_options(args.cfg_options),
        limit=args.limit,
    )
    runs = task.runs()
    if not runs:
        raise TPAError('No run of these experiments passes --host, --backbone and --dataset: ask for fewer of them.')
    views = [view(run, task.work_dir) for run in runs]
    if not args.again:
        _refuse_other_settings(views, task.cfg_options)
    todo = [one.run for one in views if args.again or one.state is not State.DONE]
    # What is seen here and will be run, nothing else: another process may finish a run any moment.
    next_ones = todo[: args.limit or None]
    stale = [one.folder for one in views if one.run in next_ones and (one.damaged or one.state is State.DONE)]
    if args.launcher == 'slurm':
        _use_slurm(args, task, todo, stale)
    else:
        _work_here(args, task, todo, stale, len(runs))


def _refuse_other_settings(views: list[RunView], cfg_options: dict) -> None:
    """Raises TPAError where a run was done with other settings: it can stand neither for these nor beside them."""
    others = [one for one in views if one.result is not None and not one.result.made_with(cfg_options)]
    if others:
        first = others[0]
        settings = ' '.join(_as_arguments(first.result.cfg_options)) or 'none'
        raise TPAError(
            f'{len(others)} of these runs were done with other --cfg-options ({first.run.experiment} {first.run.name}: '
            f'{settings}): give the same ones, repeat the runs with --again, or use another --work-dir.'
        )


def _work_here(args: argparse.Namespace, task: Task, todo: list[Run], stale: list[RunFolder], planned: int) -> None:
    environments = worker_environments(args.gpus, args.processes)
    estimator = Estimator(task.suite, task.work_dir)
    if args.dry_run:
        print(_plan_table(task, todo, estimator))
    done = planned - len(todo)
    print((f'{done} of {planned} runs are done. ' if done else '') + estimator.describe(todo, len(environments)))
    if args.dry_run or not todo:
        return
    for folder in stale:
        folder.set_aside()
    board = Board(todo, planned_images, task.work_dir, task.batch)
    supervisors: list[Supervisor] = []
    try:
        for experiments, places in _phases(args, task, environments):
            count = sum(run.experiment in experiments for run in todo)
            left = task.limit - sum(supervisor.runs_had() for supervisor in supervisors)
            if count and (left or not task.limit):
                part = replace(task, experiments=experiments, limit=left if task.limit else 0)
                supervisors.append(Supervisor(part, places[:count]))
                supervisors[-1].watch(board.look)
    finally:
        board.look(last=True)
    _conclude(task, todo, supervisors)


def _phases(
    args: argparse.Namespace, task: Task, environments: list[dict[str, str]]
) -> Iterator[tuple[tuple[str, ...], list[dict[str, str]]]]:
    """Experiments that may run side by side and where: costs are times, and measured last and alone."""
    yield tuple(name for name in task.experiments if name != 'cost'), environments
    if 'cost' in task.experiments:
        yield ('cost',), worker_environments(args.gpus, 1)[:1]


def _conclude(task: Task, runs: list[Run], supervisors: list[Supervisor]) -> None:
    """Says what came of it; the exit code is 1 where a run of these workers failed."""
    folders = [RunFolder.of(run, task.work_dir) for run in runs]
    failed = [
        folder
        for folder in folders
        if folder.state() is State.FAILED and any(supervisor.had(folder) for supervisor in supervisors)
    ]
    done = sum(folder.state() is State.DONE for folder in folders)
    print(f'{done} of {len(runs)} runs done, {len(failed)} failed; results are in {task.work_dir / task.suite}.')
    for folder in failed:
        print(f'failed: {folder.path.relative_to(task.work_dir)}: {folder.progress().error}', file=sys.stderr)
    if failed:
        sys.exit(1)


def _plan_table(task: Task, runs: list[Run], estimator: Estimator) -> str:
    rows = []
    for run in runs:
        seconds = estimator.seconds(run)
        rows.append(
            [
                run.experiment,
                run.name,
                '/'.join(suite_of(task.suite).config(run).parts[-2:]),
                len(run.settings),
                planned_images(run),
                RunFolder.of(run, task.work_dir).state().value,
                'unknown' if seconds is None else duration(seconds),
            ]
        )
    return render(['Experiment', 'Run', 'Config', 'Settings', 'Images', 'State', 'Estimate'], rows)


def _use_slurm(args: argparse.Namespace, task: Task, todo: list[Run], stale: list[RunFolder]) -> None:
    if not todo:
        print('All runs are done: there is nothing to submit.')
        return
    name = '-'.join(task.experiments) if len(task.experiments) < 4 else 'all'
    folder = task.work_dir / task.suite / 'slurm'
    text = script(name, len(todo), args.gpus, _task_arguments(task), folder, args.slurm_options)
    if args.dry_run:
        print(text, end='')
        return
    folder.mkdir(parents=True, exist_ok=True)
    print(submit(text, folder / f'{name}-{task.batch}.sbatch'))
    # After the submission, which may fail; a task takes longer to start than this.
    for one in stale:
        one.set_aside()


def _task_arguments(task: Task) -> list[str]:
    """Arguments of this command for one task of a job array."""
    arguments = ['run', *task.experiments, '--suite', task.suite, '--work-dir', str(task.work_dir.resolve())]
    for option, values in (('--host', task.hosts), ('--backbone', task.backbones), ('--dataset', task.benchmarks)):
        arguments += [option, *values] if values else []
    arguments += ['--limit', '1']
    return arguments + (['--cfg-options', *_as_arguments(task.cfg_options)] if task.cfg_options else [])


def _as_arguments(cfg_options: dict) -> list[str]:
    # DictAction splits lists at commas and knows no spaces.
    return [f'{key}={str(value).replace(" ", "")}' for key, value in cfg_options.items()]
