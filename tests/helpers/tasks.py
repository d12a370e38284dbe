"""A tiny task for tests of the launcher: files in its root say what it does, a trace there what was started."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import mmengine.dist as dist

from tpa_mmseg.errors import TPAError
from tpa_mmseg.io import write_json
from tpa_mmseg.launch import Task, TaskFolder

PATIENCE = 300


@dataclass(frozen=True)
class Tiny(Task):
    """Writes the number of its ranks, unless a file asks for something else.

    ``<label>.fail`` has a reason to fail; ``<label>.kill`` kills the process, and is gone then if it has a text;
    ``<label>.hold`` holds it up while it exists; ``<label>.meet`` until two tasks have started.

    Args:
        root: Folder of all tasks.
        label: Its name.
        ranks: Whether ranks share it.
        last: Whether it must be alone.
    """

    root: Path
    label: str
    ranks: bool = False
    last: bool = False

    @property
    def folder(self) -> TaskFolder:
        return TaskFolder(self.root / 'tasks' / self.label)

    @property
    def output(self) -> Path:
        return self.folder.path / 'output.json'

    @property
    def shared(self) -> bool:
        return self.ranks

    @property
    def alone(self) -> bool:
        return self.last

    def finished(self) -> bool:
        return self.output.exists()

    def reset(self) -> None:
        super().reset()
        self.output.unlink(missing_ok=True)

    def missing(self) -> list[str]:
        return ['weights'] if self.asked('weights') else []

    def ask(self, what: str, text: str = '') -> Path:
        path = self.root / f'{self.label}.{what}'
        path.write_text(text)
        return path

    def asked(self, what: str) -> Path | None:
        path = self.root / f'{self.label}.{what}'
        return path if path.exists() else None

    def work(self) -> None:
        names = 'OMP_NUM_THREADS', 'CUDA_VISIBLE_DEVICES'
        with (self.root / 'trace').open('a') as file:
            file.write(json.dumps([self.label, *map(os.environ.get, names)]) + '\n')
        ranks = len(dist.all_gather_object(0))
        self.folder.say(0, 1)
        while self.asked('hold') or (self.asked('meet') and len(trace(self.root)) < 2):
            time.sleep(0.05)
        if (kill := self.asked('kill')) is not None:
            if kill.read_text():
                kill.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if (reason := self.asked('fail')) is not None and dist.get_rank() == ranks - 1:
            raise TPAError(reason.read_text())
        dist.barrier()
        if dist.is_main_process():
            write_json(self.output, ranks)


def tiny(root: Path, labels: str) -> list[Tiny]:
    """One task per word."""
    return [Tiny(root, label) for label in labels.split()]


def trace(root: Path) -> list[list]:
    """Label, threads and GPUs of every task that was started, in order."""
    path = root / 'trace'
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def labels(root: Path) -> list[str]:
    return [label for label, *_ in trace(root)]


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def send(task: Task, number: signal.Signals) -> None:
    """Sends a signal to the process that holds the lock of a task."""
    for path in Path('/proc').glob('[0-9]*/fd/*'):
        with suppress(OSError):
            if os.readlink(path) == str(task.folder.path / 'lock'):
                os.kill(int(path.parts[2]), number)
