"""launch: starts what is not done, on one machine, on Slurm or on Ray, and shows how far it is."""

from __future__ import annotations

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
from .local import Slot, local_slots, run_in_slots
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
    states = [task.state() for task in tasks]
    wanted = [
        (task, state)
        for task, state in zip(tasks, states, strict=True)
        if state is not State.RUNNING and (options.rerun or state is not State.DONE)
    ]
    wanted = sorted(wanted, key=lambda pair: pair[0].alone)[: options.limit or None]
    todo = [task for task, _ in wanted]
    print(f'{_count(states, what)}; {len(todo)} to run with {sum(task.size for task in todo):,} images.', flush=True)
    groups = [[task for task in todo if task.alone is alone] for alone in (False, True)]
    if options.dry_run:
        _print_dry_run(groups, options, folder, what)
        return Counter(states)
    if todo:
        # Only what was seen and will be run: others may be finished any moment.
        again = [task for task, state in wanted if state in (State.DONE, State.FAILED)]
        start = _run_on_slurm if options.launcher == 'slurm' else _run_in_slots
        if not start(groups, again, Board(todo, what), options, folder):
            return Counter(states)
        _print_end(todo, what, folder)
    return Counter(task.state() for task in tasks)


def _count(states: Sequence[State], what: str) -> str:
    running = states.count(State.RUNNING)
    done = f'{states.count(State.DONE)} of {len(states)} {what} are done'
    return f'{done}, {running} running elsewhere' if running else done


def _run_in_slots(
    groups: list[list[Task]], again: list[Task], board: Board, options: LaunchOptions, folder: Path
) -> bool:
    """Runs tasks on this machine or on Ray. Returns True: all have ended."""
    everywhere, one_place = (_slots(one, len(board.tasks)) for one in (options, replace(options, processes=1)))
    for task in again:
        task.reset()
    with board.bar:
        for tasks, slots in zip(groups, (everywhere, one_place[:1]), strict=True):
            run_in_slots(tasks, slots, board)
    return True


def _slots(options: LaunchOptions, count: int) -> Sequence[Slot]:
    return local_slots(options) if options.launcher == 'local' else _ray().ray_slots(options, count)


def _run_on_slurm(
    groups: list[list[Task]], again: list[Task], board: Board, options: LaunchOptions, folder: Path
) -> bool:
    """Submits tasks to Slurm. Returns whether they have ended."""
    slurm, jobs, logs = _slurm(), [], folder / 'slurm'
    for tasks in filter(None, groups):
        jobs.append(slurm.submit(tasks, options, logs, folder.name, jobs))
    # After the submission, which may fail; a task takes longer to start than this.
    for task in again:
        task.reset()
    text = f'Slurm job {", ".join(jobs)}: {len(board.tasks)} tasks. They go on if this command is interrupted.'
    print(text, flush=True)
    if options.wait:
        with board.bar:
            slurm.watch(jobs, board, logs)
    return options.wait


def _print_dry_run(groups: list[list[Task]], options: LaunchOptions, folder: Path, what: str) -> None:
    tasks = [task for group in groups for task in group]
    rows = [[task.name, task.size, ', '.join(task.missing()) or 'nothing'] for task in tasks]
    print_table([what.capitalize(), 'Images', 'Missing'], rows)
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free, needed = shutil.disk_usage(existing).free / 1e6, sum(task.megabytes for task in tasks)
    enough = '' if needed < free else ': free some space first'
    print(f'The output takes about {needed:,.0f} MB of the {free:,.0f} MB that are free in {existing}{enough}.')
    if options.launcher == 'slurm':
        for group in filter(None, groups):
            print(_slurm().script(len(group), options, folder / 'slurm', folder.name))


def _print_end(tasks: Sequence[Task], what: str, folder: Path) -> None:
    found = [task.look() for task in tasks]
    states = [state for state, _ in found]
    print(f'{_count(states, what)}, {states.count(State.FAILED)} failed; results are in {folder}.')
    for task, (state, error) in zip(tasks, found, strict=True):
        if state is State.FAILED:
            print(f'failed: {task.name}: {error}', file=sys.stderr)


def _slurm() -> ModuleType:
    try:
        from . import slurm
    except ModuleNotFoundError as error:
        raise TPAError("Slurm needs submitit. Install it with: pip install 'tpa_mmseg[reproduce]'") from error
    return slurm


def _ray() -> ModuleType:
    try:
        from . import ray_slots
    except ModuleNotFoundError as error:
        raise TPAError("Ray is not installed. Install it with: pip install 'tpa_mmseg[ray]'") from error
    return ray_slots
