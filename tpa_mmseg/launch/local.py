"""Tasks on this machine: a slot for every GPU or share of the cores, each task in a process of its own."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from queue import SimpleQueue

import torch

from ..errors import TPAError
from .board import Board, note_death
from .options import LaunchOptions
from .task import Task


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


def local_slots(options: LaunchOptions) -> list[LocalSlot]:
    """Returns the slots of this machine. Raises TPAError if it has fewer GPUs than asked for."""
    found, each = torch.cuda.device_count(), options.gpus_per_task
    if options.gpus is not None and options.gpus > found:
        raise TPAError(f'--gpus {options.gpus} asks for more GPUs than the {found} that are visible here.')
    places, gpus = options.places(found)
    if gpus:
        names = (os.environ.get('CUDA_VISIBLE_DEVICES') or ','.join(map(str, range(found)))).split(',')
        groups = [names[place * each : (place + 1) * each] for place in range(places)]
        return [LocalSlot({'CUDA_VISIBLE_DEVICES': ','.join(group)}, each) for group in groups]
    threads = str(max(1, (os.cpu_count() or 1) // (places * each)))
    environment = {'CUDA_VISIBLE_DEVICES': '', 'OMP_NUM_THREADS': os.environ.get('OMP_NUM_THREADS', threads)}
    return [LocalSlot(environment, each) for _ in range(places)]


def run_in_slots(tasks: Sequence[Task], slots: Sequence, board: Board) -> None:
    """Executes tasks, as many at a time as there are slots, and returns when all have ended.

    Args:
        tasks: The tasks.
        slots: Where they run: each with the methods of :class:`LocalSlot`.
        board: Shows the progress meanwhile.
    """
    free: SimpleQueue = SimpleQueue()
    for slot in slots:
        free.put(slot)

    def start(task: Task) -> None:
        slot = free.get()
        try:
            how = slot(task)
        finally:
            free.put(slot)
        if how is not None:
            note_death(task, how)

    with ThreadPoolExecutor(len(slots)) as pool:
        started = [pool.submit(start, task) for task in tasks]
        try:
            while wait(started, board.pause).not_done:
                board.look()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for slot in slots:
                slot.stop()
            raise
    for one in started:
        one.result()
    board.look()
