"""One progress bar over the images of all runs, whichever process works on them."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from ..console import ProgressBar
from .layout import RunFolder, State
from .runs import Run

# Seconds between two looks at the folders: for a bar, and for lines in a log. Every look reads a few files per run.
_BAR_EVERY, _LINE_EVERY = 1.0, 30.0


class Board:
    """Shows how far runs are, from what their folders say.

    Args:
        runs: The runs that were not done at the start.
        images: Guesses the test images of a run before it says so itself.
        work_dir: Where the runs are.
        batch: What the workers work for: what failed in another is still to be tried.
    """

    def __init__(self, runs: Sequence[Run], images: Callable[[Run], int], work_dir: Path, batch: str) -> None:
        self._batch = batch
        self._runs = [(run.name, RunFolder.of(run, work_dir), images(run)) for run in runs]
        self._looked = 0.0
        self._bar = ProgressBar('', 0, interval=0).start()
        self._told: set[Path] = set()

    def look(self, last: bool = False) -> None:
        """Brings the bar up to date, now and then. Args: last: at once, and for the last time."""
        now = time.monotonic()
        if not last and now - self._looked < (_BAR_EVERY if sys.stderr.isatty() else _LINE_EVERY):
            return
        self._looked = now
        done = total = 0
        states: Counter[State] = Counter()
        for name, folder, guess in self._runs:
            state, progress = self._state(folder), folder.progress()
            states[state] += 1
            size = progress.total if progress is not None and progress.total else guess
            total += size
            if state in (State.DONE, State.FAILED):
                done += size
            elif state is State.RUNNING and progress is not None:
                done += progress.images
            if state is State.FAILED and folder.path not in self._told:
                self._told.add(folder.path)
                print(f'failed: {name}: {progress.error}', file=sys.stderr, flush=True)
        self._show(done, total, states, last)

    def _state(self, folder: RunFolder) -> State:
        state, claim = folder.state_and_claim()
        return State.WAITING if state is State.FAILED and claim.batch != self._batch else state

    def _show(self, done: int, total: int, states: Counter, last: bool) -> None:
        self._bar.description = f'{states[State.DONE]} of {len(self._runs)} runs'
        self._bar.note = f'{states[State.FAILED]} failed' if states[State.FAILED] else ''
        self._bar.done, self._bar.total = done, total
        self._bar.refresh()
        if last:
            self._bar.stop()
