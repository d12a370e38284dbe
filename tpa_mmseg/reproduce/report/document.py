"""What a report consists of, whichever format it is written in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..folders import RunView, State
from .plot import Plot

#: What stands in the place of a number that does not exist (yet).
STATE_WORDS = {
    State.WAITING: 'not run',
    State.RUNNING: 'running',
    State.INTERRUPTED: 'interrupted',
    State.FAILED: 'failed',
    State.DONE: 'done',
}


@dataclass(frozen=True)
class Cell:
    """One place in a table.

    Args:
        text: What is shown.
        value: What it is sorted by and what CSV files hold, unrounded; None where there is no number.
        paper: The paper's number, as text; empty where there is none to compare with.
        difference: Ours minus the paper's, with its sign.
        outside: Whether the difference is beyond the tolerance.
        missing: Whether the text only says why there is no number.
        spread: The range that a measurement varies in, or what it was taken over where that is not the usual.
        hint: What more there is to say about it, such as why a run failed.
    """

    text: str
    value: float | str | None = None
    paper: str = ''
    difference: str = ''
    outside: bool = False
    missing: bool = False
    spread: str = ''
    hint: str = ''

    @property
    def mark(self) -> str:
        """A sign for what is outside the tolerance: which way it points does not need color."""
        return ('▲' if self.difference.startswith('+') else '▼') if self.outside else ''


def word(text: str) -> Cell:
    """A cell that is no number: the name of a host, a class, a step."""
    return Cell(text, text or None)


def absent(text: str, hint: str = '') -> Cell:
    """A cell that says why there is no number."""
    return Cell(text, missing=True, hint=hint)


def pending(view: RunView) -> Cell:
    """A cell of a run that has no results."""
    return absent(STATE_WORDS[view.state], view.error or '')


def number(
    value: float | None,
    digits: int = 2,
    signed: bool = False,
    paper: float | None = None,
    tolerance: float | None = None,
) -> Cell:
    """A cell with a number.

    Args:
        value: Ours; None where a finished run has none (the IoU of a class that never occurs).
        digits: Decimals that are shown.
        signed: Show the sign of positive numbers too.
        paper: The paper's number, if it prints one.
        tolerance: How far from it is too far; by default nothing is.
    """
    if value is None:
        return absent('–', 'no value')
    text = f'{value:{"+" if signed else ""}.{digits}f}'
    if paper is None:
        return Cell(text, value)
    # Rounded as `check` rounds it, so that both find the same numbers outside the tolerance.
    difference = round(value - paper, 2)
    outside = tolerance is not None and abs(difference) > tolerance
    # Adding zero turns -0.0 into 0.0.
    shown = round(difference, digits) + 0.0
    return Cell(text, value, printed(paper, signed), f'{shown:+.{digits}f}', outside)


def unmeasured(reason: Cell, paper: float | None, signed: bool = False) -> Cell:
    """A cell without our number, with the paper's."""
    if paper is None:
        return reason
    return Cell(reason.text, paper=printed(paper, signed), missing=True, hint=reason.hint)


def printed(paper: float, signed: bool = False) -> str:
    """A number as the paper prints it: with one decimal, or two where it has them."""
    return f'{paper:{"+" if signed else ""}.{1 if round(paper, 1) == paper else 2}f}'


@dataclass(frozen=True)
class Group:
    """Rows that belong together and stay together when a table is sorted.

    Args:
        rows: Cells of every row.
        key: Whose numbers the group is sorted by.
    """

    rows: tuple[tuple[Cell, ...], ...]
    key: int = 0

    def sort_values(self, labels: int) -> list[float | str | None]:
        """For each column what the group is sorted by: names of the first row, numbers of the key row."""
        cells = (*self.rows[0][:labels], *self.rows[self.key][labels:])
        return [cell.value for cell in cells]


@dataclass(frozen=True)
class Table:
    """A table in any format.

    Args:
        name: Name of its files.
        caption: What it shows.
        columns: Titles of the columns.
        groups: The rows, in the order of the paper.
        labels: How many columns at the left are names.
        latex: Whether it is one for print.
        csv: Whether it is one for further work: no number is rounded.
        folded: Whether readers see it only when they ask for it.
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    groups: tuple[Group, ...]
    labels: int = 1
    latex: bool = False
    csv: bool = False
    folded: bool = False

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        return [row for group in self.groups for row in group.rows]


def plain_rows(rows: Sequence[Sequence[Cell]]) -> tuple[Group, ...]:
    """Groups of one row each."""
    return tuple(Group((tuple(row),)) for row in rows)


@dataclass(frozen=True)
class Figure:
    """A drawn plot. Args: name of its file; caption; plot."""

    name: str
    caption: str
    plot: Plot


@dataclass(frozen=True)
class Photo:
    """A picture of a run. Args: file; caption; kind, as in :class:`~tpa_mmseg.reproduce.results.Picture`."""

    file: Path
    caption: str
    kind: str


@dataclass(frozen=True)
class Album:
    """Pictures under one title. Args: title; photos."""

    title: str
    photos: tuple[Photo, ...]


@dataclass(frozen=True)
class Section:
    """One experiment.

    Args:
        name: Its name on the command line.
        title: Its name for people.
        about: What it shows.
        states: How many of its runs are in which state.
        notes: What a reader has to know, a paragraph each.
        tables, figures, albums: What came out.
        failures: Name of a failed run and why.
    """

    name: str
    title: str
    about: str
    states: Counter[State]
    notes: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    albums: tuple[Album, ...] = ()
    failures: tuple[tuple[str, str], ...] = ()

    @property
    def total(self) -> int:
        return sum(self.states.values())

    @property
    def started(self) -> bool:
        return self.states[State.WAITING] < self.total

    @property
    def progress(self) -> str:
        """How far it is, in a few words."""
        if not self.started:
            return 'not run yet'
        parts = [f'{self.states[State.DONE]} of {self.total} runs done']
        parts += [
            f'{self.states[state]} {STATE_WORDS[state]}'
            for state in (State.RUNNING, State.INTERRUPTED, State.FAILED)
            if self.states[state]
        ]
        return ', '.join(parts)


@dataclass(frozen=True)
class Part:
    """One suite.

    Args:
        suite: Its name on the command line.
        title: Its name for people.
        notes: What its numbers are, and are not.
        comparable: Whether the paper has numbers for it.
        sections: The experiments.
    """

    suite: str
    title: str
    notes: tuple[str, ...]
    comparable: bool
    sections: tuple[Section, ...] = field(default=())

    @property
    def badge(self) -> str:
        """A mark for everything of a suite that is not the paper's; empty for the paper's."""
        return '' if self.comparable else f'{self.suite} suite'


@dataclass(frozen=True)
class Report:
    """All of it. Args: parts; tolerance in points of mIoU; made, a line about when and with what."""

    parts: tuple[Part, ...]
    tolerance: float
    made: str
