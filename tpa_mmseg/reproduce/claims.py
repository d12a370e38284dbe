"""What the paper says in its text about its tables, computed from any tables: the paper's own cells, or ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import mean

from ..catalog import Row, paper
from .folders import RunView

#: Row of a table, as in :mod:`tpa_mmseg.catalog.paper` -> benchmark -> mIoU.
Scores = Mapping[str, Mapping[str, float]]
# Variant of a host -> the table that it is in.
_TABLES = {'': '', '224': ', 224 protocol'}
# Methods whose rows stand beside TPA's.
_METHODS = {'fsa': 'FSA', 'resclip': 'ResCLIP', 'mlmp': 'MLMP'}


@dataclass(frozen=True)
class Claim:
    """A number of the text.

    Args:
        title: What it is.
        value: What the cells give; None where there are none.
        cells: How many cells it is computed from.
        printed: What the paper's text says, if it has a number.
    """

    title: str
    value: float | None
    cells: int
    printed: float | None = None


def claims(scores: Scores) -> list[Claim]:
    """All claims. Means are means of rows, and a row's is that of the benchmarks that both of its parts have."""
    gains = _gains(scores)
    printed = paper.tables()['claims']
    found = [_mean('mean gain', gains, printed)]
    for group, hosts in paper.tables()['groups'].items():
        mine = {row: cells for row, cells in gains.items() if Row.of(row).host in hosts}
        found.append(_mean(group, mine, printed))
        for backbone in dict.fromkeys(Row.of(row).backbone for row in mine):
            part = {row: cells for row, cells in mine.items() if Row.of(row).backbone == backbone}
            found.append(_mean(f'{group}, {backbone}', part, printed))
    cells = [gain for row in gains.values() for gain in row]
    negative = sum(gain < 0 for gain in cells) if cells else None
    found.append(Claim('negative cells', negative, len(cells), printed['negative cells']))
    return found + [claim for key, title in _METHODS.items() for claim in _against(scores, key, title)]


def measured(views: Iterable[RunView]) -> dict[str, dict[str, float]]:
    """The tables of finished runs, in the paper's form."""
    found: dict[str, dict[str, float]] = {}
    for view in views:
        if view.result is None or view.result.host is None:
            continue
        full = view.result.variant('full')
        for suffix, scores in (('', view.result.host), ('+tpa', full and full.tpa)):
            if scores is not None and scores.mIoU is not None:
                found.setdefault(f'{view.run.row}{suffix}', {})[view.run.benchmark] = scores.mIoU
    return found


def _gains(scores: Scores) -> dict[str, list[float]]:
    """Row -> gains of TPA on its benchmarks. Hosts as they are: variants have tables of their own."""
    found = {}
    for row, base in scores.items():
        tpa = scores.get(f'{row}+tpa', {}) if not Row.of(row).variant else {}
        found[row] = [round(tpa[benchmark] - base[benchmark], 2) for benchmark in base if benchmark in tpa]
    return {row: cells for row, cells in found.items() if cells}


def _mean(title: str, gains: Mapping[str, list[float]], printed: Mapping[str, float]) -> Claim:
    value = round(mean(mean(cells) for cells in gains.values()), 2) if gains else None
    return Claim(title, value, sum(map(len, gains.values())), printed.get(title))


def _against(scores: Scores, key: str, title: str) -> list[Claim]:
    """Mean gains of another method and of TPA, over the cells that both have, table by table."""
    common: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in scores:
        parts = Row.of(row)
        variant, _, last = f'-{parts.variant}'.rpartition('-')
        if last != key or row.endswith('+tpa'):
            continue
        variant = variant.removeprefix('-')
        host = str(parts._replace(variant=variant))
        base, tpa = scores.get(host, {}), scores.get(f'{host}+tpa', {})
        shared = [name for name in scores[row] if name in base and name in tpa]
        cells = [(scores[row][name] - base[name], tpa[name] - base[name]) for name in shared]
        if cells:
            common.setdefault(_TABLES.get(variant, ', other encoders inside'), {})[host] = cells
    return [
        _mean(text, {host: [cell[part] for cell in cells] for host, cells in rows.items()}, {})
        for table, rows in common.items()
        for part, text in enumerate((f'gain of {title}{table}', f'gain of TPA on the same cells as {title}{table}'))
    ]
