"""``run``: executes what has not been executed yet."""

from __future__ import annotations

import argparse
import sys
import uuid

from mmengine.config import DictAction

from ...errors import TPAError
from ...evaluation import render
from ..board import Board
from ..estimate import Estimator, duration
from ..experiments import EXPERIMENTS, world_of
from ..layout import RunFolder, State
from ..runs import Run
from ..slurm import batch_of_this_job, script, submit
from ..supervisor import Supervisor, worker_environments
from ..worker import Task
from . import add_filters, add_place, chosen


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser('run', help='execute experiments; what is done is not run again')
    parser.add_argument('experiment', nargs='+', help=f'{", ".join(EXPERIMENTS)}, or all')
    add_place(parser)
    add_filters(parser)
    parser.add_argument(
        '--gpus', type=int, metavar='N', help='work on N GPUs at a time (default: all that are visible)'
    )
    parser.add_argument(
        '--processes', type=int, default=1, metavar='N', help='without GPUs: work with N processes at a time'
    )
    parser.add_argument('--launcher', choices=('none', 'slurm'), default='none', help='submit one Slurm job array')
    parser.add_argument('--slurm-options', default='', metavar='TEXT', help='for sbatch, such as "--partition=gpu"')
    parser.add_argument('--dry-run', action='store_true', help='show what would be run, and run nothing')
    parser.add_argument('--again', action='store_true', help='run what is done once more')
    parser.add_argument('--limit', type=int, default=0, metavar='N', help='take at most N runs')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        default={},
        metavar='KEY=VALUE',
        help='settings that replace those of all configs, such as test_dataloader.num_workers=8',
    )
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> None:
    task = Task(
        experiments=tuple(chosen(args.experiment)),
        world=args.world,
        work_dir=args.work_dir,
        batch=batch_of_this_job() or uuid.uuid4().hex[:12],
        hosts=tuple(args.host),
        backbones=tuple(args.backbone),
        benchmarks=tuple(args.dataset),
        cfg_options=args.cfg_options,
        limit=args.limit,
    )
    runs = task.runs()
    if not runs:
        raise TPAError('No run of these experiments passes --host, --backbone and --dataset: ask for fewer of them.')
    if args.again and not args.dry_run:
        for run in runs:
            RunFolder.of(run, task.work_dir).results.unlink(missing_ok=True)
    todo = [run for run in runs if args.again or RunFolder.of(run, task.work_dir).state() is not State.DONE]
    if args.launcher == 'slurm':
        _use_slurm(args, task, todo)
    else:
        _work_here(args, task, runs, todo)


def _work_here(args: argparse.Namespace, task: Task, runs: list[Run], todo: list[Run]) -> None:
    environments = worker_environments(args.gpus, args.processes)
    estimator = Estimator(task.world, task.work_dir)
    if args.dry_run:
        print(_plan_table(task, todo, estimator))
    done = len(runs) - len(todo)
    print((f'{done} of {len(runs)} runs are done. ' if done else '') + estimator.describe(todo, len(environments)))
    if args.dry_run or not todo:
        return
    board = Board(todo, estimator.images, task.work_dir, task.batch)
    try:
        supervisor = Supervisor(task, environments[: len(todo)])
        supervisor.watch(board.look)
    finally:
        board.look(last=True)
    _conclude(task, todo, supervisor)


def _conclude(task: Task, runs: list[Run], supervisor: Supervisor) -> None:
    """Says what came of it; the exit code is 1 where a run of these workers failed."""
    folders = [RunFolder.of(run, task.work_dir) for run in runs]
    failed = [folder for folder in folders if folder.state() is State.FAILED and supervisor.had(folder)]
    done = sum(folder.state() is State.DONE for folder in folders)
    print(f'{done} of {len(runs)} runs done, {len(failed)} failed; results are in {task.work_dir / task.world}.')
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
                '/'.join(world_of(task.world).config(run).parts[-2:]),
                len(run.variants),
                estimator.images(run),
                RunFolder.of(run, task.work_dir).state().value,
                'unknown' if seconds is None else duration(seconds),
            ]
        )
    return render(['Experiment', 'Run', 'Config', 'Variants', 'Images', 'State', 'Estimate'], rows)


def _use_slurm(args: argparse.Namespace, task: Task, todo: list[Run]) -> None:
    if not todo:
        print('All runs are done: there is nothing to submit.')
        return
    name = '-'.join(task.experiments) if len(task.experiments) < 4 else 'all'
    folder = task.work_dir / task.world / 'slurm'
    text = script(name, len(todo), args.gpus, _task_arguments(task), folder, args.slurm_options)
    if args.dry_run:
        print(text, end='')
        return
    folder.mkdir(parents=True, exist_ok=True)
    print(submit(text, folder / f'{name}-{task.batch}.sbatch'))


def _task_arguments(task: Task) -> list[str]:
    """Arguments of this command for one task of a job array."""
    arguments = ['run', *task.experiments, '--world', task.world, '--work-dir', str(task.work_dir.resolve())]
    for option, values in (('--host', task.hosts), ('--backbone', task.backbones), ('--dataset', task.benchmarks)):
        arguments += [option, *values] if values else []
    arguments += ['--limit', '1']
    # DictAction splits lists at commas and knows no spaces.
    settings = [f'{key}={str(value).replace(" ", "")}' for key, value in task.cfg_options.items()]
    return arguments + (['--cfg-options', *settings] if settings else [])
