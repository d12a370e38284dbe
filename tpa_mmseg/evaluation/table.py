"""The one table printer of the project: aligned text for terminals and logs, or Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from wcwidth import wcwidth


def render(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], align: str | None = None, markdown: bool = False
) -> str:
    """Draws a table.

    Args:
        columns: The column titles.
        rows: The cells. Floats get two decimals, integers a comma every three digits, None is a dash.
        align: One letter per column, ``'l'`` or ``'r'``; by default columns that hold only numbers go to the right.
        markdown: Draw it in Markdown instead of ASCII lines.

    Returns:
        The lines of the table without a final newline.
    """
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f'every row of a table with {len(columns)} columns needs {len(columns)} cells')
    align = align or ''.join('r' if _holds_numbers(row[i] for row in rows) else 'l' for i in range(len(columns)))
    lines = [[_text(cell, markdown) for cell in line] for line in [columns, *rows]]
    widths = [max(_width(line[i]) for line in lines) for i in range(len(columns))]
    header, *body = [_join(line, widths, align) for line in lines]
    if markdown:
        sides = zip(widths, align, strict=True)
        marks = ('-' * (width + 1) + ('-' if side == 'l' else ':') for width, side in sides)
        return '\n'.join([header, '|' + '|'.join(marks) + '|', *body])
    rule = '+' + '+'.join('-' * (width + 2) for width in widths) + '+'
    return '\n'.join([rule, header, rule, *body, rule])


def _holds_numbers(cells: Iterable[Any]) -> bool:
    return all(cell is None or isinstance(cell, (int, float)) for cell in cells)


def _text(cell: Any, markdown: bool) -> str:
    """One line of text without characters that would break the grid."""
    if cell is None:
        return '-'
    if isinstance(cell, float):
        return f'{cell:.2f}'
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f'{cell:,}'
    text = ' '.join(str(cell).split())
    return text.replace('|', '\\|') if markdown else text


def _width(text: str) -> int:
    """Number of terminal columns: East Asian characters take two, combining marks none."""
    return sum(max(0, wcwidth(character)) for character in text)


def _join(cells: Sequence[str], widths: Sequence[int], align: str) -> str:
    padded = []
    for cell, width, side in zip(cells, widths, align, strict=True):
        space = ' ' * (width - _width(cell))
        padded.append(space + cell if side == 'r' else cell + space)
    return '| ' + ' | '.join(padded) + ' |'
