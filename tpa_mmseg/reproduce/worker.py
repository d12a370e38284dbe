"""A process that works on runs: takes one, executes it, writes its results or why it failed, and takes the next."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TextIO

import torch

from ..errors import TPAError, user_message
from .claims import Claim, Heartbeat
from .execute import execute
from .experiments import plan
from .layout import Progress, RunFolder
from .queue import take
from .runs import Run

#: How a worker ends that cannot go on after a failure but whose place another may take.
REPLACE_ME = 75
# Seconds between two looks whether the process that started this one is still there.
_WATCH = 2.0


@dataclass(frozen=True)
class Task:
    """What a worker is to do.

    Args:
        experiments: Names of experiments.
        suite: Name of the suite.
        work_dir: Where runs are.
        batch: What the worker works for, the same for all workers of one start.
        hosts, backbones, benchmarks: Filters, see :func:`~tpa_mmseg.reproduce.experiments.plan`.
        cfg_options: Settings that replace those of configs.
        limit: At most so many runs of one worker; 0 for no limit.
    """

    experiments: tuple[str, ...]
    suite: str
    work_dir: Path
    batch: str
    hosts: tuple[str, ...] = ()
    backbones: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    cfg_options: dict = field(default_factory=dict)
    limit: int = 0

    def runs(self) -> list[Run]:
        """All runs that the task is about, whatever has become of them."""
        filters = self.hosts, self.backbones, self.benchmarks
        return [run for name in self.experiments for run in plan(name, self.suite, *filters)]

    def to_json(self) -> str:
        return json.dumps({**asdict(self), 'work_dir': str(self.work_dir)})

    @classmethod
    def from_json(cls, text: str) -> Task:
        values = json.loads(text)
        return cls(**{**values, 'work_dir': Path(values['work_dir'])})


def work(task: Task) -> int:
    """Works until nothing is left to take. Returns the number of runs it had."""
    had = 0
    for run, folder, claim in take(task.runs(), task.work_dir, task.batch):
        carry_out(run, folder, claim, task.cfg_options)
        had += 1
        if had == task.limit:
            break
    return had


def carry_out(run: Run, folder: RunFolder, claim: Claim, cfg_options: dict) -> bool:
    """Executes a run that this process has. Whatever goes wrong is written down. Returns whether it went well."""
    folder.note(Progress(claim.number))
    with Heartbeat(claim), log_to(folder.log):
        print(f'{time.strftime("%Y-%m-%d %H:%M:%S")} {run.experiment} {run.name}, attempt {claim.number}', flush=True)
        try:
            result = execute(run, folder, claim.number, cfg_options)
            # Somebody who thought this process dead may be at it: one of the two results is enough.
            if claim.is_latest():
                result.save(folder.results)
                folder.note(replace(folder.progress() or Progress(claim.number), over=True))
            print(f'{time.strftime("%Y-%m-%d %H:%M:%S")} done', flush=True)
            return True
        except Exception as error:
            traceback.print_exc()
            if claim.is_latest():
                folder.note(Progress(claim.number, error=user_message(error)))
            if torch.cuda.is_initialized() and not isinstance(error, TPAError):
                # After an error of a GPU's kernel nothing works in this process any more.
                sys.exit(REPLACE_ME)
            return False


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Sends what this process and its children say to a file, native code included."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(descriptor) for descriptor in (1, 2)]
    with path.open('a') as log:
        for descriptor in (1, 2):
            os.dup2(log.fileno(), descriptor)
        try:
            # Also where Python's own streams are not the descriptors of the process, as in notebooks and tests.
            with redirect_stdout(_output()), redirect_stderr(_output()):
                yield
        finally:
            _output().flush()
            for descriptor, old in zip((1, 2), kept, strict=True):
                os.dup2(old, descriptor)
                os.close(old)


@cache
def _output() -> TextIO:
    """A stream to wherever the output of this process leads just now.

    One for all runs: log handlers keep the stream that they were made with, long after that run's log was closed.
    """
    return open(1, 'w', encoding='utf-8', buffering=1, closefd=False)


def _end_with(parent: int) -> None:
    """Ends this process when the one that started it is gone, so that a kill ends all of the work."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(arguments: Sequence[str]) -> None:
    """``python -m tpa_mmseg.reproduce.worker PARENT``, with the task on standard input."""
    task = Task.from_json(sys.stdin.read())
    _end_with(int(arguments[0]))
    work(task)


if __name__ == '__main__':
    main(sys.argv[1:])
