"""Starts workers, one per GPU or as many as asked for on CPUs, watches them and shows how far they are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from ..errors import TPAError
from .claims import last_claim
from .layout import RunFolder
from .worker import REPLACE_ME, Task

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


class Supervisor:
    """The workers of one start.

    Args:
        task: What they do.
        environments: What each gets into its environment.
    """

    def __init__(self, task: Task, environments: Sequence[dict[str, str]]) -> None:
        self.task = task
        self._slots: list[tuple[dict[str, str], subprocess.Popen]] = []
        self._logs = task.work_dir / task.world / 'workers'
        self._logs.mkdir(parents=True, exist_ok=True)
        self._starts = 0
        self._pids: set[int] = set()
        for environment in environments:
            self._slots.append((environment, self._start(environment)))

    def _start(self, environment: dict[str, str]) -> subprocess.Popen:
        self._starts += 1
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, (package, os.environ.get('PYTHONPATH'))))
        with self._log(self._starts).open('wb') as log:
            process = subprocess.Popen(
                [sys.executable, '-m', 'tpa_mmseg.reproduce.worker', str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **environment, 'PYTHONPATH': path},
            )
        self._pids.add(process.pid)
        process.stdin.write(self.task.to_json().encode())
        process.stdin.close()
        return process

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

    def _tend(self, slot: tuple[dict[str, str], subprocess.Popen]) -> tuple[dict[str, str], subprocess.Popen] | None:
        """A slot as it goes on: the worker, another in its place, or none where it has nothing left to do."""
        environment, process = slot
        code = process.poll()
        if code is None:
            return slot
        if code == 0 or (self.task.limit and code == REPLACE_ME):
            return None
        if not self._had_a_run(process.pid):
            raise TPAError(f'A worker could not start: the last lines in {self._logs} say why.')
        return environment, self._start(environment)

    def had(self, folder: RunFolder) -> bool:
        """Whether the latest attempt at a run was by one of these workers."""
        claim = last_claim(folder.path)
        return claim is not None and claim.batch == self.task.batch and claim.pid in self._pids

    def _had_a_run(self, pid: int) -> bool:
        """Whether a worker died over a run, which is then noted as failed, and not before its first one."""
        claims = (last_claim(RunFolder.of(run, self.task.work_dir).path) for run in self.task.runs())
        return any(claim is not None and (claim.pid, claim.batch) == (pid, self.task.batch) for claim in claims)

    def stop(self) -> None:
        """Ends the workers that are left."""
        for _, process in self._slots:
            process.send_signal(signal.SIGTERM)
        for _, process in self._slots:
            process.wait()
