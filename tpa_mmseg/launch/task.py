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

from abc import ABC, abstractmethod
from dataclasses import dataclass

from ..errors import TPAError
from .folder import State, TaskFolder


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
            if self.finished():
                return State.DONE, None
        except TPAError as error:
            return State.FAILED, str(error)
        return self.folder.unfinished()
