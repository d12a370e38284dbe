"""Executes one run, in a process that is started for it."""

from __future__ import annotations

import pickle
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch

from ..errors import user_message
from .context import RunContext
from .cost import cost_run
from .folders import Progress, RunFolder, RunView, State, view
from .overlap import overlap_run
from .pictures import pictures_run
from .repetition import repetition_run
from .results import RunResult
from .runs import Run
from .scoring import score_run

_OTHERS: dict[str, Callable[[RunContext], RunResult]] = {
    'repetition': repetition_run,
    'overlap': overlap_run,
    'cost': cost_run,
    'pictures': pictures_run,
}
# Seconds to wait for the lock of a run: a look at its state takes it for a moment.
_PATIENCE = 5.0


@dataclass(frozen=True)
class Task:
    """All that a process needs to know.

    Args:
        run: The run.
        work_dir: Folder of all runs.
        cfg_options: Settings that replace those of the config.
    """

    run: Run
    work_dir: Path
    cfg_options: dict = field(default_factory=dict)

    @property
    def folder(self) -> RunFolder:
        return RunFolder.of(self.run, self.work_dir)

    def view(self) -> RunView:
        return view(self.run, self.work_dir)


def execute(task: Task) -> None:
    """Executes a run, unless it is done or another process works on it. An error is noted in the run's folder."""
    try:
        lock = task.folder.lock(_PATIENCE).acquire()
    except TimeoutError:
        print('Another process works on this run.')
        return
    with lock:
        if task.view().state is not State.DONE:
            _attempt(task)


def _attempt(task: Task) -> None:
    run, folder = task.run, task.folder
    folder.note(Progress())
    print(f'{time.strftime("%Y-%m-%d %H:%M:%S")} {run.experiment} {run.name}')
    try:
        # Results are written last and atomically: a run that has them is done.
        measure(run, folder, task.cfg_options).save(folder.results)
        print(f'{time.strftime("%Y-%m-%d %H:%M:%S")} done')
    except Exception as error:
        traceback.print_exc()
        folder.note(Progress(error=user_message(error)))


@torch.no_grad()
def measure(run: Run, folder: RunFolder, cfg_options: dict | None = None) -> RunResult:
    """Returns what a run of any experiment measures.

    Args:
        run: The run.
        folder: Where its config, pictures and progress go.
        cfg_options: Settings that replace those of the config.
    """
    context = RunContext(run, folder, cfg_options)
    return _OTHERS.get(run.experiment, score_run)(context)


if __name__ == '__main__':
    execute(pickle.load(sys.stdin.buffer))
