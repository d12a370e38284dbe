"""What has become of tasks, from what they have written: a progress bar over all of them, and noticed deaths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..console import ProgressBar
from .task import Progress, State, Task

# Seconds between two looks at the folders of tasks, at least and for each task: they may be on a shared disk.
_PAUSE, _PAUSE_PER_TASK = 3.0, 0.1


class Board:
    """One progress bar over the images of all tasks; the time left follows from the images done so far.

    Args:
        tasks: What was started.
        what: What the tasks are called, in the plural.

    Attributes:
        open: Tasks that are neither done nor failed.
        pause: Seconds until the next look.
    """

    def __init__(self, tasks: Sequence[Task], what: str) -> None:
        self.open, self.bar = list(tasks), ProgressBar('', 0)
        self._title, self._images = f'of {len(tasks)} {what}', 0
        self._ended: Counter[State] = Counter()

    @property
    def pause(self) -> float:
        return max(_PAUSE, _PAUSE_PER_TASK * len(self.open))

    def look(self) -> None:
        """Updates the bar and the open tasks. What has ended is not looked at again."""
        under_way = left = 0
        for task in list(self.open):
            state, progress = task.state(), task.folder.progress() or Progress()
            size = progress.total or task.size
            if state in (State.DONE, State.FAILED):
                self.open.remove(task)
                self._ended[state] += 1
                # What failed says nothing about the time that others take.
                self._images += size if state is State.DONE else 0
            else:
                done = progress.done if state is State.RUNNING else 0
                under_way, left = under_way + done, left + size - done
        self.bar.description = f'{self._ended[State.DONE]} {self._title}'
        self.bar.note = f'{self._ended[State.FAILED]} failed' if self._ended[State.FAILED] else ''
        self.bar.done, self.bar.total = self._images + under_way, self._images + under_way + left
        self.bar.refresh()


def note_death(task: Task, how: str, logs: Path | None = None) -> None:
    """Writes down that the process of a task ended without output and without a message.

    Args:
        task: The task. Nothing is noted if another process works on it.
        how: How the process ended.
        logs: Where to look if the task has not begun to write its log.
    """
    if task.state() in (State.WAITING, State.INTERRUPTED):
        place = task.folder.log if logs is None or task.folder.log.exists() else logs
        why = f'The process ended without a message ({how}): it was killed, canceled, or ran out of time or memory.'
        task.folder.note(Progress(error=f'{why} {place} may say more.'))
