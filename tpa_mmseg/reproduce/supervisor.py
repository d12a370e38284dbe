"""Starts workers, one per GPU or as many as asked for on CPUs, watches them and shows how far they are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ..errors import TPAError
from .claims import last_claim
from .layout import RunFolder
from .worker import Task

_LOOK_EVERY = 0.5


def device_count() -> int:
    """GPUs that this process may use."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def worker_environments(gpus: int | None, processes: int) -> list[dict[str, str]]:
    """The environment of each worker: its GPU, or its share of the cores.

    Args:
        gpus: How many GPUs to use; None for all there are.
        processes: How many processes where there are no GPUs.
    """
    found = device_count()
    if gpus is not None and gpus > found:
        raise TPAError(f'--gpus {gpus} asks for more GPUs than the {found} that are visible here.')
    gpus = found if gpus is None else gpus
    if gpus:
        names = os.environ.get('CUDA_VISIBLE_DEVICES')
        names = names.split(',') if names else [str(number) for number in range(found)]
        return [{'CUDA_VISIBLE_DEVICES': name} for name in names[:gpus]]
    threads = str(max(1, (os.cpu_count() or 1) // processes))
    return [{'CUDA_VISIBLE_DEVICES': '', 'OMP_NUM_THREADS': os.environ.get('OMP_NUM_THREADS', threads)}] * processes


def shares(limit: int, workers: int) -> list[int]:
    """How many runs each of some workers may take, none of them 0; 0 for each where there is no limit."""
    if not limit:
        return [0] * workers
    workers = min(workers, limit)
    return [limit // workers + (number < limit % workers) for number in range(workers)]


@dataclass(frozen=True)
class _Slot:
    """A worker's place. Args: environment; limit of its runs, 0 for none; process."""

    environment: dict[str, str]
    limit: int
    process: subprocess.Popen


class Supervisor:
    """The workers of one start.

    Args:
        task: What they do; its limit is one of all of them together.
        environments: What each gets into its environment.
    """

    def __init__(self, task: Task, environments: Sequence[dict[str, str]]) -> None:
        self.task = task
        self._slots: list[_Slot] = []
        self._logs = task.work_dir / task.suite / 'workers'
        self._logs.mkdir(parents=True, exist_ok=True)
        self._starts = 0
        self._pids: set[int] = set()
        # A limit leaves fewer workers where it is smaller than their number.
        for environment, limit in zip(environments, shares(task.limit, len(environments)), strict=False):
            self._slots.append(self._start(environment, limit))

    def _start(self, environment: dict[str, str], limit: int) -> _Slot:
        self._starts += 1
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, (package, os.environ.get('PYTHONPATH'))))
        with self._log(self._starts).open('ab') as log:
            process = subprocess.Popen(
                [sys.executable, '-m', 'tpa_mmseg.reproduce.worker', str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **environment, 'PYTHONPATH': path},
            )
        self._pids.add(process.pid)
        process.stdin.write(replace(self.task, limit=limit).to_json().encode())
        process.stdin.close()
        return _Slot(environment, limit, process)

    def _log(self, number: int) -> Path:
        return self._logs / f'{self.task.batch}-{number}.log'

    def watch(self, look: Callable[[], None]) -> None:
        """Waits until all work is done. Args: look, called again and again meanwhile."""
        try:
            while self._slots:
                time.sleep(_LOOK_EVERY)
                look()
                self._slots = [slot for slot in map(self._tend, self._slots) if slot is not None]
        finally:
            self.stop()

    def _tend(self, slot: _Slot) -> _Slot | None:
        """A slot as it goes on: the worker, another in its place, or none where it has nothing left to do."""
        code = slot.process.poll()
        if code is None:
            return slot
        if code == 0:
            return None
        had = self._runs_of({slot.process.pid})
        if not had:
            raise TPAError(f'A worker could not start: the last lines in {self._logs} say why.')
        if slot.limit and had >= slot.limit:
            return None
        return self._start(slot.environment, slot.limit and slot.limit - had)

    def had(self, folder: RunFolder) -> bool:
        """Whether the latest attempt at a run was by one of these workers."""
        claim = last_claim(folder.path)
        return claim is not None and claim.batch == self.task.batch and claim.pid in self._pids

    def runs_had(self) -> int:
        """How many runs these workers have taken."""
        return self._runs_of(self._pids)

    def _runs_of(self, pids: set[int]) -> int:
        claims = (last_claim(RunFolder.of(run, self.task.work_dir).path) for run in self.task.runs())
        return sum(claim is not None and claim.batch == self.task.batch and claim.pid in pids for claim in claims)

    def stop(self) -> None:
        """Ends the workers that are left."""
        for slot in self._slots:
            slot.process.send_signal(signal.SIGTERM)
        for slot in self._slots:
            slot.process.wait()
