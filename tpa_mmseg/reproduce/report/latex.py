r"""Tables as LaTeX with booktabs, to be read with \input. A few commands say how cells look, and may be redefined."""

from __future__ import annotations

from .document import Cell, Table

_SPECIAL = {character: f'\\{character}' for character in '&%$#_{}'}
_SPECIAL |= {
    '\\': r'\textbackslash{}',
    '~': r'\textasciitilde{}',
    '^': r'\textasciicircum{}',
    '–': '--',
    '−': '$-$',
    '≤': r'$\leq$',
    '≥': r'$\geq$',
    '→': r'$\to$',
    '×': r'$\times$',
}

_HEAD = r"""% Needs \usepackage{booktabs}, and \usepackage{graphicx} for the width.
% A number, and below it the paper's and the difference. To show ours alone: \renewcommand{\beside}[3]{#1}
\providecommand{\beside}[3]{\shortstack{#1\\{\tiny #2\,(#3)}}}
% The same without a difference: times, or the paper's number where ours does not exist yet.
\providecommand{\below}[2]{\shortstack{#1\\{\tiny #2}}}
% Farther from the paper than the tolerance.
\providecommand{\outside}[1]{\textbf{#1}\rlap{$^{\dagger}$}}
% In the place of a number that does not exist (yet).
\providecommand{\missing}[1]{\textit{\scriptsize #1}}
"""


def latex_text(table: Table, badge: str, tolerance: float) -> str:
    """The table as a float.

    Args:
        table: The table.
        badge: What the caption has to say about the suite of the numbers; empty for the paper's.
        tolerance: For the caption, where a cell is marked.
    """
    caption = escape(table.caption) + '.'
    if badge:
        caption = rf'\textbf{{{escape(badge.capitalize())}, not a benchmark of the paper.}} {caption}'
    if any(cell.outside for row in table.rows for cell in row):
        caption += rf' $\dagger$: more than {tolerance:g} points from the paper.'
    align = 'l' * table.labels + 'c' * (len(table.columns) - table.labels)
    blocks = ['\n'.join(_line([_cell(cell) for cell in row]) for row in group.rows) for group in table.groups]
    # Rules only between groups of several rows, as the paper has them between hosts.
    several = any(len(group.rows) > 1 for group in table.groups)
    body = ('\n\\midrule\n' if several else '\n').join(blocks)
    header = _line([escape(column) for column in table.columns])
    return (
        f'{_HEAD}\\begin{{table}}\n\\centering\n\\caption{{{caption}}}\n\\label{{tab:{table.name}}}\n'
        f'\\resizebox{{\\linewidth}}{{!}}{{%\n\\begin{{tabular}}{{@{{}}{align}@{{}}}}\n\\toprule\n{header}\n'
        f'\\midrule\n{body}\n\\bottomrule\n\\end{{tabular}}}}\n\\end{{table}}\n'
    )


def escape(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return ''.join(_SPECIAL.get(character, character) for character in text)


def _line(cells: list[str]) -> str:
    return ' & '.join(cells) + r' \\'


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    if cell.missing:
        text = rf'\missing{{{text}}}'
    elif text[:1] in ('+', '-') and cell.value != cell.text:
        text = f'${text}$'
    if cell.outside:
        text = rf'\outside{{{text}}}'
    if cell.paper and cell.difference:
        over = f', {escape(cell.spread)}' if cell.spread else ''
        return rf'\beside{{{text}}}{{{escape(cell.paper)}}}{{${cell.difference}${over}}}'
    below = ', '.join(escape(part) for part in (cell.spread, f'paper {cell.paper}' if cell.paper else '') if part)
    return rf'\below{{{text}}}{{{below}}}' if below else text
