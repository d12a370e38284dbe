"""launch: starts what is not done, on one machine, on Slurm or on Ray, and shows how far it is."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from ..console import print_table
from ..errors import TPAError, printable
from ..io import claim_folder
from .board import Board
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
    seen = [(task, task.state()) for task in sorted(tasks, key=lambda task: task.alone)]
    left_alone = (State.RUNNING,) if options.rerun else (State.RUNNING, State.DONE)
    wanted = [(task, state) for task, state in seen if state not in left_alone][: options.limit or None]
    todo, count = [task for task, _ in wanted], _count([state for _, state in seen], what)
    print(f'{count}; {len(todo)} to run with {sum(task.size for task in todo):,} images.', flush=True)
    groups = [[task for task in todo if task.alone is alone] for alone in (False, True)]
    if options.dry_run:
        _print_dry_run(todo, folder, what)
        if options.launcher == 'slurm':
            print(*(_engine('slurm').script(len(group), options, folder) for group in groups if group), sep='\n')
    elif todo:
        claim_folder(folder)
        watch = _engine(options.launcher).start(groups, options, folder)
        # Only what was seen and will be run: others may be finished any moment. The start may fail; a task takes longer
        # to begin than this.
        for task, state in wanted:
            if state in (State.DONE, State.FAILED):
                task.reset()
        if options.wait or options.launcher != 'slurm':
            board = Board(todo, what)
            with board.bar:
                watch(board)
            _print_end(todo, what, folder)
    return Counter(task.state() for task in tasks)


def _engine(launcher: str) -> ModuleType:
    """Imports the module that starts tasks: ``local``, ``slurm`` or ``ray``. The last two need an extra each."""
    try:
        return importlib.import_module(f'.{launcher}', __package__)
    except ModuleNotFoundError as error:
        extra = 'ray' if launcher == 'ray' else 'reproduce'
        raise TPAError(f"{error.name} is not installed. Install it with: pip install 'tpa_mmseg[{extra}]'") from error


def _count(states: Sequence[State], what: str) -> str:
    running = states.count(State.RUNNING)
    done = f'{states.count(State.DONE)} of {len(states)} {what} are done'
    return f'{done}, {running} running elsewhere' if running else done


def _print_dry_run(tasks: Sequence[Task], folder: Path, what: str) -> None:
    rows = [[task.name, task.size, ', '.join(task.missing()) or 'nothing'] for task in tasks]
    print_table([what.capitalize(), 'Images', 'Missing'], rows)
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free, needed = shutil.disk_usage(existing).free / 1e6, sum(task.megabytes for task in tasks)
    enough = '' if needed < free else ': free some space first'
    print(f'The output takes about {needed:,.0f} MB of the {free:,.0f} MB that are free in {existing}{enough}.')


def _print_end(tasks: Sequence[Task], what: str, folder: Path) -> None:
    found = {task.name: task.look() for task in tasks}
    failed = {name: error for name, (state, error) in found.items() if state is State.FAILED}
    print(f'{_count([state for state, _ in found.values()], what)}, {len(failed)} failed; results are in {folder}.')
    for name, error in failed.items():
        print(printable(f'failed: {name}: {error}'), file=sys.stderr)
