"""Tables as pandas frames, and as HTML, Markdown, LaTeX and CSV. Names come from strangers: all formats escape them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import pandas as pd

from ...console import render

_LATEX = {'\\': r'\textbackslash{}', '~': r'\textasciitilde{}', '^': r'\textasciicircum{}'}
_LATEX |= {sign: f'\\{sign}' for sign in '&%$#_{}'} | {'▲': r'$\uparrow$', '▼': r'$\downarrow$', '–': '--'}
# A spreadsheet takes a cell that begins so for a formula.
_FORMULA = ('=', '+', '-', '@', '\t', '\r', '\n')


class Cell(NamedTuple):
    """A number beside the paper's.

    Args:
        ours: NaN where there is none (yet).
        paper: NaN where the paper prints none.
        outside: Whether they are further apart than the tolerance.
        note: Why ours is missing, or what else there is to say.
        digits: Decimals.
        signed: Whether positive numbers have a sign.
    """

    ours: float = float('nan')
    paper: float = float('nan')
    outside: bool = False
    note: str = ''
    digits: int = 1
    signed: bool = False


@dataclass(frozen=True)
class Table:
    """A table in any format.

    Args:
        name: Name of its files.
        caption: What it shows.
        frame: Its cells: numbers, names, or :class:`Cell`.
        grouped: Whether rows belong together, from one with a name in the second column to the next.
        numbers: Whether it is one for further work: a CSV file, folded on the page.
    """

    name: str
    caption: str
    frame: pd.DataFrame
    grouped: bool = False
    numbers: bool = False

    def to_html(self) -> str:
        heads = [_html(name, side == 'r') for name, side in zip(self.frame, self._sides, strict=True)]
        kinds = ['grouped' if self.grouped else 'sortable']
        frame = self._shown.map(_html).set_axis(heads, axis=1)
        return frame.to_html(index=False, escape=False, border=0, classes=kinds)

    def to_markdown(self) -> str:
        frame = self._shown.map(markdown).rename(columns=markdown)
        return render(list(frame.columns), frame.values.tolist(), self._sides, markdown=True)

    def to_latex(self) -> str:
        """With the rules of booktabs."""
        frame = self._shown.map(_latex).rename(columns=_latex)
        names = {'caption': _latex(self.caption), 'label': f'tab:{self.name}', 'column_format': self._sides}
        text = frame.to_latex(index=False, escape=False, **names)
        # A rule before every row that has a name in the second column.
        return re.sub(r'(?<=\\\\\n)(?=[^&\n]*& [^& ])', r'\\midrule\n', text) if self.grouped else text

    def to_csv(self) -> str:
        """Numbers are not rounded, and stay numbers."""
        return self.frame.map(_plain).rename(columns=_plain).to_csv(index=False)

    @property
    def _shown(self) -> pd.DataFrame:
        return self.frame.apply(_aligned) if len(self.frame) else self.frame

    @property
    def _sides(self) -> str:
        """Names to the left, numbers to the right."""
        names = self.frame.map(lambda value: isinstance(value, str)).all()
        return ''.join('l' if name else 'r' for name in names)


def _number(value: float, digits: int, signed: bool) -> str:
    # Adding zero turns -0.0 into 0.0.
    return f'{round(value, digits) + 0.0:{"+" if signed else ""},.{digits}f}'


def _text(value: object) -> str:
    """What is shown of a value."""
    if isinstance(value, str):
        return value
    if isinstance(value, Cell):
        ours, paper, mark = _parts(value)
        return ' '.join(filter(None, (ours, f'({paper})' if paper else '', mark, value.note)))
    if value is None or pd.isna(value):
        return '–'
    return f'{value:,.0f}'


def _aligned(column: pd.Series) -> pd.Series:
    """Numbers of a column with the same decimals; none if all are whole."""
    numbers = pd.to_numeric(column.where(~column.map(lambda value: isinstance(value, str | Cell))))
    if (numbers.dropna() % 1 == 0).all():
        return column
    digits = 2 if numbers.abs().max() >= 1 else 3
    return column.map(lambda value: value if isinstance(value, str | Cell) else Cell(value, digits=digits))


def _parts(cell: Cell) -> tuple[str, str, str]:
    """Our number or why there is none, the paper's, and a mark that needs no color."""
    ours = '–' if pd.isna(cell.ours) else _number(cell.ours, cell.digits, cell.signed)
    # The paper has one decimal, or two.
    digits = min(1, cell.digits) if round(cell.paper, 1) == cell.paper else cell.digits
    paper = '' if pd.isna(cell.paper) else _number(cell.paper, digits, cell.signed)
    mark = ('▲' if cell.ours > cell.paper else '▼') if cell.outside else ''
    return ours, paper, mark


def _html(value: object, right: bool = False) -> str:
    if not isinstance(value, Cell):
        kind = '' if isinstance(value, str) and not right else ' class="n"'
        return f'<span{kind}>{escape(_text(value))}</span>'
    ours, paper, mark = _parts(value)
    kind = 'n out' if mark else 'n missing' if pd.isna(value.ours) else 'n'
    shown = f'{ours} {mark}'.strip() if not (pd.isna(value.ours) and value.note) else value.note
    note = value.note if shown != value.note else ''
    small = ''.join(f'<small>{escape(text)}</small>' for text in (paper and f'paper {paper}', note) if text)
    return f'<span class="{kind}">{escape(shown)}{small}</span>'


def markdown(value: object) -> str:
    """Names that would be taken for markup are shown as they are; bars of tables are left to the table."""
    return re.sub(r'([\\`*_\[\]#!~])', r'\\\1', escape(_text(value), quote=False))


def _latex(value: object) -> str:
    return ''.join(_LATEX.get(sign, sign) for sign in _text(value))


def _plain(value: object) -> object:
    if isinstance(value, Cell):
        return value.ours
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def wide(cells: pd.DataFrame, by: dict[str, str], digits: int) -> pd.DataFrame:
    """Benchmarks across, and their average once all of a row have run: a mean of some cannot stand beside one of all.

    Args:
        cells: From :func:`~tpa_mmseg.reproduce.frames.cells`.
        by: Columns whose values make a row, and what they are called; they become the columns at the left.
        digits: Decimals.
    """
    benchmarks = list(dict.fromkeys(cells.benchmark))
    columns = [*benchmarks, 'Average'] if len(benchmarks) > 1 else benchmarks
    rows = []
    for key, line in cells.groupby(list(by), sort=False):
        found = {'Average': _average(line, len(benchmarks))}
        for row in line.itertuples():
            note = row.state.removeprefix('done').removeprefix(', ')
            found[row.benchmark] = Cell(row.ours, row.paper, row.outside, note)
        signed = bool((line.quantity == 'gain').all())
        shown = (found.get(name, Cell()) for name in columns)
        rows.append([*key, *(cell._replace(digits=digits, signed=signed) for cell in shown)])
    return pd.DataFrame(rows, columns=[*by.values(), *columns])


def _average(line: pd.DataFrame, benchmarks: int) -> Cell:
    if len(line) == 1:
        return Cell()
    ours, paper = line.ours.mean(skipna=False), line.paper.mean(skipna=False)
    if pd.isna(ours):
        return Cell(paper=paper, note=f'{line.ours.count()} of {len(line)} run')
    return Cell(ours, paper, note=f'over {len(line)} of {benchmarks}' if len(line) < benchmarks else '')
