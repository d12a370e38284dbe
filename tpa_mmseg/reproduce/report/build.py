"""Builds a report from results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pandas as pd

from ...errors import TPAError
from .. import frames
from ..folders import RunView, State
from ..sources import Source
from ..suite import SUITES
from .section import Section
from .sections import build_sections
from .words import WORDS


@dataclass(frozen=True)
class Part:
    """One suite.

    Args:
        suite: Its name on the command line.
        title: Its name for people.
        notes: What its numbers are, and are not.
        verdicts: Verdict -> how many of the paper's rows; empty where the paper has none.
        sections: The experiments.
    """

    suite: str
    title: str
    notes: list[str]
    verdicts: dict[str, int]
    sections: list[Section]


def build_report(
    source: Source, suites: Sequence[str] | None, tolerance: float, classes: Sequence[str] = ()
) -> list[Part]:
    """Reads all results.

    Args:
        source: Where they are.
        suites: Names of suites; by default the paper's, and every other in which something was started.
        tolerance: How far a number may be from the paper's, in points of mIoU.
        classes: Runs of the main table whose classes are shown; by default those of the catalog.
    """
    found = {name: source.views(name) for name in suites or SUITES}
    found = {
        name: views
        for name, views in found.items()
        if suites or name == 'paper' or any(view.state is not State.WAITING for view in views)
    }
    known = {view.run.name for views in found.values() for view in views if view.run.experiment == 'main'}
    for name in set(classes) - known:
        raise TPAError(f'--classes {name}: the main table has no such run; `list main` shows their names.')
    return [_part(name, views, tolerance, classes) for name, views in found.items()]


def _part(name: str, views: list[RunView], tolerance: float, classes: Sequence[str]) -> Part:
    cells, notes, verdicts = frames.cells(views, tolerance), [WORDS['incomparable']], {}
    if name == 'paper':
        counts, notes = frames.verdicts(cells).verdict.value_counts(), [_comparison(cells, tolerance)]
        verdicts = {verdict: int(counts.get(verdict, 0)) for verdict in WORDS['verdicts']}
    suite = replace(SUITES[name], classes=tuple(classes) or SUITES[name].classes)
    return Part(name, suite.title, [*notes, origins(views)], verdicts, build_sections(suite, views, cells))


def _comparison(cells: pd.DataFrame, tolerance: float) -> str:
    """What is compared with the paper, and how many numbers are far from it."""
    found = cells[cells.difference.notna()]
    if found.empty:
        return 'None of these runs is done yet: the only numbers here are those that the paper prints.'
    return (
        f'{len(found)} numbers of finished runs are in the paper; {found.outside.sum()} of them differ by more than '
        f'{tolerance:g} points of mIoU and are marked ▲ (above) or ▼ (below). A row agrees if all its numbers have run '
        'and none is marked.'
    )


def origins(views: list[RunView]) -> str:
    """What ran where, with which versions."""
    found = [view.result.provenance for view in views if view.result is not None]
    done = f'{len(found)} of {len(views)} runs are done.'
    if not found:
        return done
    devices = _counted(origin.device for origin in found)
    commits = _counted(f'{(origin.commit or "unknown")[:12]}{"+" if origin.dirty else ""}' for origin in found)
    torch = sorted({origin.packages.get('torch', 'unknown') for origin in found})
    time = timedelta(seconds=round(sum(origin.seconds for origin in found)))
    memory = max(origin.device_memory or origin.host_memory or 0 for origin in found)
    return (
        f'{done} They took {time} on {devices}, with at most {memory / (1 << 30):.1f} GB of memory; '
        f'commit {commits}, PyTorch {", ".join(torch)}.'
    )


def _counted(values: Iterable[str]) -> str:
    counts = Counter(values)
    return ', '.join(name if len(counts) == 1 else f'{name} ({count} runs)' for name, count in counts.items())
