"""Starts runs on this machine, each in a process of its own, and shows the progress of runs wherever they are."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import local

import torch

from ..console import ProgressBar
from ..errors import TPAError
from .experiments import planned_images
from .folders import Progress, State
from .run import Task

#: Seconds between two looks at the folders of runs, which may be on a shared disk.
LOOK_EVERY = 3.0
#: Starts the process of a run, with a pickled task on its standard input.
COMMAND = (sys.executable, '-u', '-m', 'tpa_mmseg.reproduce.run')


class Board:
    """One progress bar over the images of all runs, read from their folders. Args: tasks."""

    def __init__(self, tasks: list[Task]) -> None:
        self.tasks = self.open = tasks
        self._states: Counter[State] = Counter()
        # Images of what has ended.
        self._images = 0
        self.bar = ProgressBar('', 0)

    def look(self) -> None:
        """Updates the bar and the tasks that are open: those without results and without an error."""
        tasks, self.open, done, total = self.open, [], self._images, self._images
        for task in tasks:
            state, progress = task.view().state, task.folder.progress() or Progress()
            size = progress.total or planned_images(task.run)
            total += size
            if state in (State.DONE, State.FAILED):
                self._states[state] += 1
                self._images += size
                done += size
            else:
                self.open.append(task)
                done += progress.images if state is State.RUNNING else 0
        self.bar.description = f'{self._states[State.DONE]} of {len(self.tasks)} runs'
        self.bar.note = f'{self._states[State.FAILED]} failed' if self._states[State.FAILED] else ''
        self.bar.done, self.bar.total = done, total
        self.bar.refresh()


def note_death(task: Task, how: str) -> None:
    """Writes down that a run's process ended without results and without an error message. Args: task; how."""
    error = (
        f'The process ended without a message ({how}): it was killed or ran out of time or memory. '
        f'The end of {task.folder.log} may say more.'
    )
    task.folder.note(Progress(error=error))


def slots(gpus: int | None, processes: int) -> list[dict[str, str]]:
    """Returns the environment variables of every slot, which is a GPU or a share of the cores.

    Args:
        gpus: Number of GPUs to use; None for all visible ones.
        processes: Number of slots if there are no GPUs.
    """
    found = torch.cuda.device_count()
    if gpus is not None and gpus > found:
        raise TPAError(f'--gpus {gpus} asks for more GPUs than the {found} that are visible here.')
    gpus = found if gpus is None else gpus
    if gpus:
        names = os.environ.get('CUDA_VISIBLE_DEVICES') or ','.join(map(str, range(found)))
        return [{'CUDA_VISIBLE_DEVICES': name} for name in names.split(',')[:gpus]]
    threads = str(max(1, (os.cpu_count() or 1) // processes))
    return [{'CUDA_VISIBLE_DEVICES': '', 'OMP_NUM_THREADS': os.environ.get('OMP_NUM_THREADS', threads)}] * processes


def run_here(tasks: Sequence[Task], environments: Sequence[dict[str, str]], board: Board) -> None:
    """Executes runs, as many at a time as there are slots, and returns when all have ended.

    Args:
        tasks: The runs.
        environments: From :func:`slots`.
        board: Shows the progress meanwhile.
    """
    left, slot, processes = list(environments), local(), set()

    def occupy() -> None:
        slot.environment = left.pop()

    def start(task: Task) -> int:
        task.folder.path.mkdir(parents=True, exist_ok=True)
        with task.folder.log.open('ab') as log:
            process = subprocess.Popen(
                COMMAND,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **slot.environment},
            )
        processes.add(process)
        process.communicate(pickle.dumps(task))
        return process.returncode

    with ThreadPoolExecutor(len(environments), initializer=occupy) as pool:
        codes = [pool.submit(start, task) for task in tasks]
        try:
            while wait(codes, LOOK_EVERY).not_done:
                board.look()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(processes):
                process.terminate()
            raise
    for task, code in zip(tasks, codes, strict=True):
        if code.result():
            note_death(task, f'exit code {code.result()}')
