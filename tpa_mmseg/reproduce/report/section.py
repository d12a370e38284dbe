"""Section: what the report shows of one experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from .albums import Album
from .figures import Figure, draw
from .tables import Table


@dataclass
class Section:
    """One experiment, or another view of its results.

    Args:
        name: Its name on the command line.
        title: Its name for people.
        about: What it shows.
        progress: How far it is.
        started: Whether there is anything to see.
        notes: What a reader has to know, a paragraph each.
        failures: Name of a failed run and why.
        tables, figures, albums: What came out.
    """

    name: str
    title: str
    about: str
    progress: str
    started: bool
    notes: list[str] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    albums: list[Album] = field(default_factory=list)

    def tabulate(
        self, name: str, caption: str, frame: pd.DataFrame, columns: Sequence[str] | None = None, **options
    ) -> None:
        """Adds a table. Args: columns: their names for people; options of :class:`Table`."""
        frame = frame if columns is None else frame.set_axis(columns, axis=1)
        self.tables.append(Table(name, caption, frame, **options))

    def draw(self, name: str, frame: pd.DataFrame, kind: str | None = None, of: str = '', **channels: dict) -> None:
        """Adds a figure. Args: as for :func:`~.figures.draw`; its kind is by default its name."""
        self.figures.append(draw(name, kind or name, frame, of, **channels))
