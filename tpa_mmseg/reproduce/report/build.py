"""Builds a report from the folders of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from ...version import __version__
from ..folders import WORK_DIR, RunView, State, collect
from ..reference import TOLERANCE, compare_all
from ..suite import SUITES
from .document import Part, Report
from .sections import build_sections

_INCOMPARABLE = (
    'These numbers are of a small painted world and tiny networks made for it. They show that every experiment runs '
    "from end to end, and what TPA does there. They are not the paper's benchmarks: no number of the paper stands "
    'beside them, and none may be put there.'
)


def build_report(
    work_dir: Path = WORK_DIR, suites: Sequence[str] | None = None, tolerance: float = TOLERANCE
) -> Report:
    """Reads all results.

    Args:
        work_dir: Where the runs are.
        suites: Names of suites; by default the paper's, and every other in which something was started.
        tolerance: How far a number may be from the paper's, in points of mIoU.
    """
    found = {name: collect(name, work_dir) for name in suites or SUITES}
    parts = tuple(
        _part(name, views, tolerance)
        for name, views in found.items()
        if suites or name == 'paper' or any(view.state is not State.WAITING for view in views)
    )
    made = f'Made by tpa_mmseg {__version__} on {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC'
    return Report(parts, tolerance, made)


def _part(name: str, views: list[RunView], tolerance: float) -> Part:
    comparable = name == 'paper'
    notes = [_comparison(views, tolerance)] if comparable else [_INCOMPARABLE]
    notes += _machines(views)
    return Part(name, SUITES[name].title, tuple(notes), comparable, build_sections(SUITES[name], views, tolerance))


def _comparison(views: list[RunView], tolerance: float) -> str:
    """What is compared with the paper, and how many numbers are far from it."""
    found = compare_all(views)
    if not found:
        return 'None of these runs is done yet: the only numbers here are those that the paper prints.'
    outside = sum(not one.within(tolerance) for one in found)
    return (
        f"With every number stand the paper's and the difference, ours minus the paper's. {len(found)} numbers of "
        f'finished runs are in the paper; {outside} of them differ by more than {tolerance:g} points of mIoU and are '
        'marked ▲ (above) or ▼ (below). Averages are marked too, but not counted.'
    )


def _machines(views: list[RunView]) -> list[str]:
    """How much was run on what."""
    done = [view.result for view in views if view.result is not None]
    if not done:
        return []
    devices = Counter(result.device for result in done)
    names = ', '.join(f'{device} ({count} runs)' for device, count in devices.items())
    time = timedelta(seconds=round(sum(result.seconds + result.startup_seconds for result in done)))
    return [f'{len(done)} of {len(views)} runs are done; they took {time} on {names}.']
