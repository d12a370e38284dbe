"""Tasks on this machine: a slot for every GPU or share of the cores, each task in a process of its own."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread

import torch

from ..errors import TPAError
from .board import Board, note_death
from .options import LaunchOptions
from .task import Task

#: Executes a task. Returns how its process died; None if it ended well or noted its error.
Slot = Callable[[Task], str | None]


def start(groups: Sequence[list[Task]], options: LaunchOptions, folder: Path) -> Callable[[Board], None]:
    """Returns what executes tasks and shows the progress. Args: groups: one after the other, the second one by one."""
    return partial(run_in_slots, groups, [slots(options), slots(replace(options, processes=1))[:1]])


def run_here(task: Task, environment: dict[str, str], ranks: int) -> str | None:
    """Executes a task in a process on this machine. Args: environment: which GPUs or cores; ranks of the task."""
    task.folder.path.mkdir(parents=True, exist_ok=True)
    command, described = [sys.executable, '-u', '-m', 'tpa_mmseg.launch', str(ranks)], pickle.dumps(task)
    with task.folder.log.open('ab') as log:
        code = subprocess.run(command, input=described, stdout=log, stderr=log, env=os.environ | environment).returncode
    return f'exit code {code}' if code else None


def slots(options: LaunchOptions) -> list[Slot]:
    """Returns the slots of this machine. Raises TPAError if it has fewer GPUs than asked for."""
    found, each = torch.cuda.device_count(), options.gpus_per_task
    if options.gpus is not None and options.gpus > found:
        raise TPAError(f'--gpus {options.gpus} asks for more GPUs than the {found} that are visible here.')
    places, gpus = options.places(found)
    if gpus:
        names = (os.environ.get('CUDA_VISIBLE_DEVICES') or ','.join(map(str, range(found)))).split(',')
        shares = [','.join(names[place * each : (place + 1) * each]) for place in range(places)]
        environments = [{'CUDA_VISIBLE_DEVICES': share} for share in shares]
    else:
        threads = os.environ.get('OMP_NUM_THREADS') or str(max(1, (os.cpu_count() or 1) // (places * each)))
        environments = [{'CUDA_VISIBLE_DEVICES': '', 'OMP_NUM_THREADS': threads}] * places
    return [partial(run_here, environment=environment, ranks=each) for environment in environments]


def run_in_slots(groups: Sequence[list[Task]], places: Sequence[list[Slot]], board: Board) -> None:
    """Executes groups of tasks, each in slots of its own, and returns when all have ended.

    Args:
        groups: The tasks.
        places: The slots of each group.
        board: Shows the progress meanwhile.
    """

    def serve(slot: Slot, waiting: Iterator[Task]) -> None:
        for task in waiting:
            if (how := slot(task)) is not None:
                note_death(task, how)

    for tasks, slots in zip(groups, places, strict=True):
        waiting = iter(tasks)
        # Nobody waits for them if this command is interrupted.
        threads = [Thread(target=serve, args=(slot, waiting), daemon=True) for slot in slots]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(board.pause)
                board.look()
    board.look()
