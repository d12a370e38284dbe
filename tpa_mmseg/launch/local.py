"""Tasks on this machine: a slot for every GPU or share of the cores, each task in a process of its own."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from ..errors import TPAError
from .board import Board, note_death
from .options import LaunchOptions
from .task import Task


def start(groups: Sequence[list[Task]], options: LaunchOptions, folder: Path) -> Callable[[Board], None]:
    """Returns what executes tasks and shows the progress. Args: groups: one after the other, the second one by one."""
    return partial(run_in_slots, groups, [slots(options), slots(replace(options, processes=1))[:1]])


class LocalSlot:
    """A place for one task at a time on this machine.

    Args:
        environment: Variables that say which GPUs or cores.
        ranks: Processes of a task.
    """

    def __init__(self, environment: dict[str, str], ranks: int = 1) -> None:
        self.environment, self._ranks = environment, ranks
        self._process: subprocess.Popen | None = None

    def __call__(self, task: Task) -> str | None:
        """Executes a task. Returns how its process died; None if it ended well or noted its error."""
        task.folder.path.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, '-u', '-m', 'tpa_mmseg.launch', str(self._ranks)]
        environment = {**os.environ, **self.environment}
        with task.folder.log.open('ab') as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment)
        self._process.communicate(pickle.dumps(task))
        return f'exit code {self._process.returncode}' if self._process.returncode else None

    def stop(self) -> None:
        """Ends the task that is under way."""
        if self._process is not None:
            self._process.terminate()


def slots(options: LaunchOptions) -> list[LocalSlot]:
    """Returns the slots of this machine. Raises TPAError if it has fewer GPUs than asked for."""
    found, each = torch.cuda.device_count(), options.gpus_per_task
    if options.gpus is not None and options.gpus > found:
        raise TPAError(f'--gpus {options.gpus} asks for more GPUs than the {found} that are visible here.')
    places, gpus = options.places(found)
    if gpus:
        names = (os.environ.get('CUDA_VISIBLE_DEVICES') or ','.join(map(str, range(found)))).split(',')
        shares = [','.join(names[place * each : (place + 1) * each]) for place in range(places)]
        return [LocalSlot({'CUDA_VISIBLE_DEVICES': share}, each) for share in shares]
    threads = os.environ.get('OMP_NUM_THREADS') or str(max(1, (os.cpu_count() or 1) // (places * each)))
    return [LocalSlot({'CUDA_VISIBLE_DEVICES': '', 'OMP_NUM_THREADS': threads}, each) for _ in range(places)]


def run_in_slots(groups: Sequence[list[Task]], places: Sequence[list], board: Board) -> None:
    """Executes groups of tasks, each in slots of its own, and returns when all have ended.

    Args:
        groups: The tasks.
        places: The slots of each group: each with the methods of :class:`LocalSlot`.
        board: Shows the progress meanwhile.
    """

    def serve(slot: LocalSlot, waiting: Iterator[Task]) -> None:
        for task in waiting:
            if (how := slot(task)) is not None:
                note_death(task, how)

    for tasks, slots in zip(groups, places, strict=True):
        waiting = iter(tasks)
        with ThreadPoolExecutor(len(slots)) as pool:
            serving = [pool.submit(serve, slot, waiting) for slot in slots]
            try:
                while wait(serving, board.pause).not_done:
                    board.look()
            except BaseException:
                list(waiting)  # nobody takes another one
                for slot in slots:
                    slot.stop()
                raise
        for one in serving:
            one.result()
    board.look()
