"""How long runs will take: their images times the seconds per image that runs of the same kind took here.

Before the first run is finished, a suite's own guess has to do, and is called one.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import TPAError
from .experiments import EXPERIMENTS, plan, planned_images, suite_of
from .layout import RunFolder
from .results import RunResult
from .runs import Run

# From the most alike to the least: what a run shares with those it is judged by.
_LIKENESS: tuple[Callable[[Run], tuple], ...] = (
    lambda run: (run.experiment, run.row, run.benchmark),
    lambda run: (run.row, run.benchmark),
    lambda run: (run.row,),
    lambda run: (run.row.host,),
    lambda run: (),
)


@dataclass(frozen=True)
class Speed:
    """What a finished run took. Args: seconds per image; seconds before the first."""

    per_image: float
    startup: float


class Estimator:
    """Guesses from the finished runs of a suite. Args: suite; work_dir."""

    def __init__(self, suite: str, work_dir: Path) -> None:
        self._guess = suite_of(suite).seconds_per_image
        self._known = [
            (run, speed)
            for name in EXPERIMENTS
            for run in plan(name, suite)
            if (speed := _speed(RunFolder.of(run, work_dir))) is not None
        ]

    def seconds(self, run: Run) -> float | None:
        """How long a run will take, by the suite's own guess where nothing was measured yet; None without one."""
        for likeness in _LIKENESS:
            alike = [speed for other, speed in self._known if likeness(other) == likeness(run)]
            if alike:
                per_image = statistics.median(speed.per_image for speed in alike)
                return statistics.median(speed.startup for speed in alike) + per_image * planned_images(run)
        return None if self._guess is None else self._guess * planned_images(run)

    def describe(self, runs: Sequence[Run], workers: int) -> str:
        """The estimate in a sentence."""
        images = sum(planned_images(run) for run in runs)
        text = f'{len(runs)} runs, {images:,} images, {workers} at a time'
        seconds = [self.seconds(run) for run in runs]
        if not runs or None in seconds:
            return f'{text}. No finished run to estimate the time by yet; the bar will tell.'
        source = 'estimated from finished runs'
        if not self._known:
            source = f'a guess, with {self._guess:g} s per image: no run is finished yet'
        return f'{text}: about {duration(sum(seconds) / min(workers, len(runs)))} ({source}).'


def _speed(folder: RunFolder) -> Speed | None:
    if not folder.results.exists():
        return None
    try:
        result = RunResult.load(folder.results)
    except TPAError:
        return None
    return Speed(result.seconds / max(1, result.images), result.startup_seconds)


def duration(seconds: float) -> str:
    """A time for people, no more exact than an estimate is."""
    if seconds < 90:
        return f'{max(1, round(seconds))} s'
    if seconds < 5400:
        return f'{round(seconds / 60)} min'
    return f'{seconds / 3600:.1f} h'
