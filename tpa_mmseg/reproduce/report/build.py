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
from .sections import WORDS, build_sections
from .tables import Table

#: Verdicts on the rows of the paper, in the order of the summary, and what they mean.
VERDICTS: dict[str, str] = WORDS['verdicts']


@dataclass(frozen=True)
class Part:
    """One suite.

    Args:
        suite: Its name on the command line.
        title: Its name for people.
        comparable: Whether the paper has numbers for it.
        notes: What its numbers are, and are not.
        verdicts: Verdict -> how many of the paper's rows; empty where the paper has none.
        differing: The rows that differ from the paper; None if there are none.
        sections: The experiments.
    """

    suite: str
    title: str
    comparable: bool
    notes: list[str]
    verdicts: dict[str, int]
    differing: Table | None
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
    cells, comparable = frames.cells(views, tolerance), name == 'paper'
    rows = frames.verdicts(cells)
    counts = {verdict: int((rows.verdict == verdict).sum()) for verdict in VERDICTS} if comparable else {}
    notes = [_comparison(cells, tolerance)] if comparable else [WORDS['incomparable']]
    suite = replace(SUITES[name], classes=tuple(classes) or SUITES[name].classes)
    sections = build_sections(suite, views, cells)
    return Part(name, suite.title, comparable, notes + _origins(views), counts, _differing(rows), sections)


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


def _differing(rows: pd.DataFrame) -> Table | None:
    found = rows[rows.verdict == 'differs']
    if found.empty:
        return None
    frame = found.drop(columns='verdict').rename(columns=str.capitalize).rename(columns={'Title': 'Setting'})
    return Table('differing', 'Rows that do not agree with the paper', frame)


def _origins(views: list[RunView]) -> list[str]:
    """What ran where, with which versions."""
    origins = [view.result.provenance for view in views if view.result is not None]
    if not origins:
        return []
    devices = _counted(origin.device for origin in origins)
    commits = _counted(f'{(origin.commit or "unknown")[:12]}{"+" if origin.dirty else ""}' for origin in origins)
    torch = sorted({origin.packages.get('torch', 'unknown') for origin in origins})
    time = timedelta(seconds=round(sum(origin.seconds for origin in origins)))
    memory = max(origin.device_memory or origin.host_memory or 0 for origin in origins)
    return [
        f'{len(origins)} of {len(views)} runs are done. They took {time} on {devices}, with at most '
        f'{memory / (1 << 30):.1f} GB of memory; commit {commits}, PyTorch {", ".join(torch)}.'
    ]


def _counted(values: Iterable[str]) -> str:
    counts = Counter(values)
    return ', '.join(name if len(counts) == 1 else f'{name} ({count} runs)' for name, count in counts.items())
