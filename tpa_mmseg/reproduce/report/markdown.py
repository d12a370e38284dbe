"""The report as Markdown, with links to the plots and pictures."""

from __future__ import annotations

import os
from pathlib import Path

from ...console import render
from .document import Cell, Part, Report, Section, Table


def markdown_text(report: Report, out: Path) -> str:
    """The whole report. Args: report; out, the folder that it is written to."""
    blocks = ['# TPA reproduced', report.made + '.']
    for part in report.parts:
        blocks += [f'## {part.title}', *part.notes, _overview(part)]
        for section in part.sections:
            blocks += _section(part, section, out)
    return '\n\n'.join(blocks) + '\n'


def _overview(part: Part) -> str:
    rows = [[section.title, section.about, section.progress] for section in part.sections]
    return render(['Experiment', 'What it shows', 'State'], rows, markdown=True)


def _section(part: Part, section: Section, out: Path) -> list[str]:
    badge = f' ({part.badge})' if part.badge else ''
    blocks = [f'### {section.title}{badge}', f'{_sentence(section.about)} {_sentence(section.progress)}']
    blocks += section.notes
    blocks += [f'- failed: `{run}`: {error}' for run, error in section.failures]
    blocks += [f'![{figure.caption}](figures/{part.suite}/{figure.name}.svg)' for figure in section.figures]
    for table in section.tables:
        drawn = _table(table)
        if table.folded:
            drawn = f'<details><summary>{table.caption}</summary>\n\n{drawn}\n\n</details>'
        else:
            drawn = f'{_sentence(table.caption)}\n\n{drawn}'
        blocks.append(drawn)
    for album in section.albums:
        blocks.append(f'#### {album.title}')
        blocks += [f'![{photo.caption}]({_link(photo.file, out)})\n\n{photo.caption}' for photo in album.photos]
    return blocks


def _sentence(text: str) -> str:
    return f'{text[:1].upper()}{text[1:]}.'


def _table(table: Table) -> str:
    align = 'l' * table.labels + 'r' * (len(table.columns) - table.labels)
    return render(table.columns, [[_cell(cell) for cell in row] for row in table.rows], align, markdown=True)


def _cell(cell: Cell) -> str:
    text = f'*{cell.text}*' if cell.missing else f'**{cell.text}** {cell.mark}' if cell.outside else cell.text
    paper = f'paper {cell.paper}' if cell.paper else ''
    beside = ', '.join(part for part in (cell.spread, paper, cell.difference if paper else '') if part)
    return f'{text} ({beside})' if beside else text


def _link(file: Path, out: Path) -> str:
    return Path(os.path.relpath(file, out)).as_posix().replace(' ', '%20')
