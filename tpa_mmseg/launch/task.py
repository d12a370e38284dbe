"""Task: one piece of work that a launcher can start anywhere, any number of times.

A task is a plain description that can be pickled: subclass :class:`Task` as a frozen dataclass. It writes its output
last and atomically, and is finished when that output is valid. There is no other state: notes in its folder are for
people.

    @dataclass(frozen=True)
    class Shard(Task):
        out: Path
        number: int

        @property
        def folder(self):
            return TaskFolder(self.out / f'shard-{self.number:05d}')

        def finished(self):
            return (self.folder.path / 'labels.tar').exists()

        def work(self):
            ...
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from filelock import FileLock

from ..errors import TPAError
from ..io import parse_json, write_json

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
    """The folder of one task and of no other: log, lock and notes. The output in it is the task's own.

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

    def progress(self) -> Progress | None:
        """Returns the last note; None if the task was not started."""
        try:
            return Progress(**parse_json(self._progress.read_text(encoding='utf-8')))
        except (OSError, ValueError, TypeError):
            return None

    def unfinished(self) -> tuple[State, str | None]:
        """Returns the state of a task that is not done and, if it failed, why."""
        progress = self.progress()
        if progress is None:
            return State.WAITING, None
        if progress.error is not None:
            return State.FAILED, progress.error
        try:
            with self.lock():
                return State.INTERRUPTED, None
        except OSError:  # taken, or a folder of another user
            return State.RUNNING, None

    def note(self, progress: Progress) -> None:
        """Writes a note."""
        write_json(self._progress, asdict(progress))

    def say(self, done: int, total: int) -> None:
        """Notes how far the task is: now and then, and at the end. Tasks call it after every image."""
        now = time.monotonic()
        if now - self._noted >= _NOTE_EVERY or done >= total:
            self._noted = now
            self.note(Progress(done, total))

    def forget(self) -> None:
        """Removes the note, so that the task is one that was not started."""
        self._progress.unlink(missing_ok=True)


@dataclass(frozen=True)
class Task(ABC):
    """Base class of tasks. What has a value here may be a property of a subclass."""

    #: Number of images, as far as it is known before the task has started.
    size = 1
    #: Whether it measures times, and therefore runs after all others and beside none.
    alone = False
    #: Whether several ranks can share the work; otherwise it uses one GPU.
    shared = False
    #: Estimated size of the output, for the dry run.
    megabytes = 1.0

    @property
    @abstractmethod
    def folder(self) -> TaskFolder:
        """The task's own folder, for its log, lock and notes, and usually for its output."""

    @abstractmethod
    def finished(self) -> bool:
        """Whether the output is there and valid. Raises TPAError with a sentence if it cannot be read."""

    @abstractmethod
    def work(self) -> None:
        """Makes the output and writes it last and atomically. An exception is a failure with a reason.

        Called in a process of its own, which holds the task's lock and whose output is the task's log. Take
        ``folder = self.folder`` once and call ``folder.say(done, total)`` after every image. What an earlier attempt
        left in the folder may be used to go on from there. If the work is :attr:`shared`, it is called on every rank,
        after the ranks have joined; then rank 0 alone writes.
        """

    @property
    def name(self) -> str:
        """What people call the task, unique among those that are launched together. Default: that of its folder."""
        return self.folder.path.name

    def missing(self) -> list[str]:
        """Returns what the task needs and this machine does not have, for the dry run. Default: nothing."""
        return []

    def reset(self) -> None:
        """Makes the task one that has not been started. Subclasses also set their output aside."""
        self.folder.forget()

    def state(self) -> State:
        """Returns how the task stands now."""
        return self.look()[0]

    def look(self) -> tuple[State, str | None]:
        """Returns how the task stands now and, if it failed, why."""
        try:
            return (State.DONE, None) if self.finished() else self.folder.unfinished()
        except TPAError as error:
            return State.FAILED, str(error)
