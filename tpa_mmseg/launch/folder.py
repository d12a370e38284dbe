"""The folder of a task: its log, its lock, and notes for people about how far it is. Its output is the task's own."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from filelock import FileLock

from ..io import write_json

# Seconds between two notes of how far a task is: a file on a shared disk.
_NOTE_EVERY = 2.0


class State(Enum):
    """The state of a task."""

    WAITING = 'waiting'  #: not started
    RUNNING = 'running'  #: a process works on it
    INTERRUPTED = 'interrupted'  #: its process is gone, without output; the next start runs it again
    FAILED = 'failed'  #: it ended with an error, which its folder keeps; the next start runs it again
    DONE = 'done'  #: its output is valid


@dataclass(frozen=True)
class Progress:
    """Content of ``state.json``.

    Args:
        done: Number of images done so far.
        total: Number of images of the task; 0 if it is not known yet.
        error: Why the last attempt failed, in a sentence.
    """

    done: int = 0
    total: int = 0
    error: str | None = None


class TaskFolder:
    """The folder of one task and of no other.

    ``run.log`` is the output of its processes, ``state.json`` a :class:`Progress`, ``lock`` is locked while a process
    works on the task; the kernel unlocks it when that process is gone.

    Args:
        path: The folder, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.log = path, path / 'run.log'
        self._progress, self._lock = path / 'state.json', path / 'lock'
        self._noted = float('-inf')

    def lock(self, timeout: float = 0.0) -> FileLock:
        """Returns the lock of the task. Entering it raises TimeoutError if another process has it."""
        self.path.mkdir(parents=True, exist_ok=True)
        return FileLock(self._lock, timeout=timeout)

    def locked(self) -> bool:
        """Whether a process works on the task."""
        if not self._lock.exists():
            return False
        try:
            with self.lock():
                return False
        except OSError:  # taken, or a folder of another user
            return True

    def progress(self) -> Progress | None:
        """Returns the last note; None if the task was not started."""
        try:
            return Progress(**json.loads(self._progress.read_text(encoding='utf-8')))
        except (OSError, ValueError, TypeError):
            return None

    def unfinished(self) -> tuple[State, str | None]:
        """Returns the state of a task that is not done and, if it failed, why."""
        progress = self.progress()
        if progress is None:
            return State.WAITING, None
        if progress.error is not None:
            return State.FAILED, progress.error
        return (State.RUNNING if self.locked() else State.INTERRUPTED), None

    def note(self, progress: Progress) -> None:
        """Writes a note."""
        write_json(self._progress, asdict(progress))

    def say(self, done: int, total: int) -> None:
        """Notes how far the task is: now and then, and at the end. Tasks call it after every image."""
        now = time.monotonic()
        if now - self._noted >= _NOTE_EVERY or done >= total:
            self._noted = now
            self.note(Progress(done, total))

    def take_output(self) -> None:
        """Makes the log the output of this process."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self.log.open('ab') as log:
            for descriptor in (1, 2):
                os.dup2(log.fileno(), descriptor)

    def forget(self) -> None:
        """Removes the note, so that the task is one that was not started."""
        self._progress.unlink(missing_ok=True)
