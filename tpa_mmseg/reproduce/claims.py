"""What the paper says in its text about its tables, computed from any tables: the paper's own cells, or ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from ..catalog import Row, paper

# Variant of a host -> the table that it is in.
_TABLES = {'': '', '224': ', 224 protocol'}
# Methods whose rows stand beside TPA's.
_METHODS = {'fsa': 'FSA', 'resclip': 'ResCLIP', 'mlmp': 'MLMP'}


@dataclass(frozen=True)
class Claim:
    """A number of the text.

    Args:
        title: What it is.
        value: What the cells give; NaN where there are none.
        cells: How many cells it is computed from.
        printed: What the paper's text says, if it has a number.
    """

    title: str
    value: float = float('nan')
    cells: int = 0
    printed: float | None = None


def claims(scores: pd.DataFrame) -> list[Claim]:
    """All claims. Means are means of rows, and a row's is that of the benchmarks that both of its parts have.

    Args:
        scores: mIoU of rows, named as in :mod:`tpa_mmseg.catalog.paper`, by benchmark; NaN where there is none.
    """
    # Hosts as they are: variants have tables of their own.
    hosts = [row for row in scores.index if not row.endswith('+tpa') and not Row.of(row).variant]
    gains = _gains(scores, [f'{row}+tpa' for row in hosts], hosts).dropna(how='all')
    found = [_mean('mean gain', gains)]
    for group, members in paper.tables()['groups'].items():
        mine = gains[[Row.of(row).host in members for row in gains.index]]
        found.append(_mean(group, mine))
        for backbone, part in mine.groupby(lambda row: Row.of(row).backbone, sort=False):
            found.append(_mean(f'{group}, {backbone}', part))
    cells, negative = int(gains.count().sum()), float((gains < 0).sum().sum())
    known = paper.tables()['claims']['negative cells']
    found.append(Claim('negative cells', negative if cells else float('nan'), cells, known))
    return found + [claim for key, title in _METHODS.items() for claim in _against(scores, key, title)]


def measured(cells: pd.DataFrame) -> pd.DataFrame:
    """The tables of finished runs, in the paper's form. Args: cells: from :func:`.frames.cells`."""
    found = cells[cells.quantity.isin(['base', 'tpa']) & cells.setting.isin(['', 'full'])]
    found = found.assign(row=found.row + found.quantity.map({'base': '', 'tpa': '+tpa'}))
    return found.pivot_table('ours', 'row', 'benchmark', 'last', sort=False)


def _gains(scores: pd.DataFrame, rows: list[str], bases: list[str]) -> pd.DataFrame:
    """Base -> gains of a row over it."""
    return (scores.reindex(rows).set_axis(bases) - scores.reindex(bases)).round(2)


def _mean(title: str, gains: pd.DataFrame) -> Claim:
    value = round(float(gains.mean(axis=1).mean()), 2)
    return Claim(title, value, int(gains.count().sum()), paper.tables()['claims'].get(title))


def _against(scores: pd.DataFrame, key: str, title: str) -> Iterator[Claim]:
    """Mean gains of another method and of TPA, over the cells that both have, table by table."""
    tables: dict[str, dict[str, str]] = {}
    for row in scores.index:
        variant, _, last = Row.of(row).variant.rpartition('-')
        if last == key and not row.endswith('+tpa'):
            host = str(Row.of(row)._replace(variant=variant))
            tables.setdefault(_TABLES.get(variant, ', other encoders inside'), {})[row] = host
    for table, rows in tables.items():
        hosts = list(rows.values())
        theirs, ours = _gains(scores, list(rows), hosts), _gains(scores, [f'{host}+tpa' for host in hosts], hosts)
        both = theirs.notna() & ours.notna()
        if both.any(axis=None):
            yield _mean(f'gain of {title}{table}', theirs[both])
            yield _mean(f'gain of TPA on the same cells as {title}{table}', ours[both])
