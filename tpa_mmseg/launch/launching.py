"""launch: starts what is not done, on one machine, on Slurm or on Ray, and shows how far it is."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from ..console import print_table
from ..errors import TPAError
from .board import Board
from .local import local_slots, run_in_slots
from .options import LaunchOptions
from .task import State, Task


def launch(tasks: Sequence[Task], options: LaunchOptions, folder: Path, what: str = 'runs') -> Counter[State]:
    """Executes the tasks that are not done and that no other process works on.

    Args:
        tasks: What has to be done.
        options: Where and how.
        folder: That of all tasks. Their logs, locks and notes are in folders of their own.
        what: What the tasks are called, in the plural.

    Returns:
        How many of all tasks are in which state afterward.
    """
    seen = [(task, task.state()) for task in tasks]
    wanted = [(task, state) for task, state in seen if state is not State.RUNNING]
    wanted = [(task, state) for task, state in wanted if options.rerun or state is not State.DONE]
    wanted = sorted(wanted, key=lambda pair: pair[0].alone)[: options.limit or None]
    todo = [task for task, _ in wanted]
    count = _count([state for _, state in seen], what)
    print(f'{count}; {len(todo)} to run with {sum(task.size for task in todo):,} images.', flush=True)
    groups = [[task for task in todo if task.alone is alone] for alone in (False, True)]
    if options.dry_run:
        _print_dry_run(groups, options, folder, what)
    elif todo:
        # Only what was seen and will be run: others may be finished any moment.
        again = [task for task, state in wanted if state in (State.DONE, State.FAILED)]
        start = _run_on_slurm if options.launcher == 'slurm' else _run_in_slots
        start(groups, again, options, folder, Board(todo, what))
        if options.wait:
            _print_end(todo, what, folder)
    return Counter(task.state() for task in tasks)


def _count(states: Sequence[State], what: str) -> str:
    running = states.count(State.RUNNING)
    done = f'{states.count(State.DONE)} of {len(states)} {what} are done'
    return f'{done}, {running} running elsewhere' if running else done


def _run_in_slots(groups: list[list], again: list[Task], options: LaunchOptions, folder: Path, board: Board) -> None:
    """Runs tasks on this machine or on Ray, and those that must be alone after the others in one place."""
    find = local_slots if options.launcher == 'local' else _backend('ray_slots', 'ray').ray_slots
    places = find(options), find(replace(options, processes=1))[:1]
    for task in again:
        task.reset()
    with board.bar:
        for tasks, slots in zip(groups, places, strict=True):
            run_in_slots(tasks, slots, board)


def _run_on_slurm(groups: list[list], again: list[Task], options: LaunchOptions, folder: Path, board: Board) -> None:
    slurm, jobs = _backend('slurm', 'reproduce'), []
    for tasks in filter(None, groups):
        jobs.append(slurm.submit(tasks, options, folder / 'slurm', jobs))
    # After the submission, which may fail; a task takes longer to start than this.
    for task in again:
        task.reset()
    count = f'{len(board.tasks)} tasks'
    print(f'Slurm job {", ".join(jobs)}: {count}. They go on if this command is interrupted.', flush=True)
    if options.wait:
        with board.bar:
            slurm.watch(jobs, board, folder / 'slurm')


def _print_dry_run(groups: list[list[Task]], options: LaunchOptions, folder: Path, what: str) -> None:
    tasks = sum(groups, [])
    rows = [[task.name, task.size, ', '.join(task.missing()) or 'nothing'] for task in tasks]
    print_table([what.capitalize(), 'Images', 'Missing'], rows)
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free, needed = shutil.disk_usage(existing).free / 1e6, sum(task.megabytes for task in tasks)
    enough = '' if needed < free else ': free some space first'
    print(f'The output takes about {needed:,.0f} MB of the {free:,.0f} MB that are free in {existing}{enough}.')
    if options.launcher == 'slurm':
        for group in filter(None, groups):
            print(_backend('slurm', 'reproduce').script(len(group), options, folder / 'slurm'))


def _print_end(tasks: Sequence[Task], what: str, folder: Path) -> None:
    found = [task.look() for task in tasks]
    states = [state for state, _ in found]
    print(f'{_count(states, what)}, {states.count(State.FAILED)} failed; results are in {folder}.')
    for task, (state, error) in zip(tasks, found, strict=True):
        if state is State.FAILED:
            print(f'failed: {task.name}: {error}', file=sys.stderr)


def _backend(module: str, extra: str) -> ModuleType:
    """Imports what needs an extra of the package."""
    try:
        return importlib.import_module(f'.{module}', __package__)
    except ModuleNotFoundError as error:
        name = error.name or module
        raise TPAError(f"{name} is not installed. Install it with: pip install 'tpa_mmseg[{extra}]'") from error
