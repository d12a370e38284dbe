"""The report as one HTML page that needs nothing else: no network, no library."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from pathlib import Path

from ..folders import State
from .document import Album, Cell, Figure, Group, Part, Report, Section, Table
from .images import embed
from .plot import stylesheet

# Nothing may be loaded from anywhere; the browser sees to it.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page_text(report: Report) -> str:
    """The page."""
    parts = '\n'.join(_part(part) for part in report.parts)
    links = ''.join(f'<a href="#{part.suite}">{escape(part.title)}</a>' for part in report.parts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<link rel="icon" href="data:,">
<title>TPA reproduced</title>
<style>{_asset('page.css')}{stylesheet()}</style>
</head>
<body>
<header>
<h1>TPA reproduced</h1>
<p>Test-time prototype adaptation for open-vocabulary segmentation: our numbers, and the paper's where it has them.</p>
<p class="made">{escape(report.made)}. A click on the head of a column sorts its table, another turns it round.</p>
<nav aria-label="Parts">{links}</nav>
</header>
<main>
{parts}
</main>
<div id="tip" role="status" hidden></div>
<script>{_asset('page.js')}</script>
</body>
</html>
"""


@cache
def _asset(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding='utf-8')


def _part(part: Part) -> str:
    notes = ''.join(f'<p>{escape(note)}</p>' for note in part.notes)
    sections = '\n'.join(_section(part, section) for section in part.sections)
    kind = 'comparable' if part.comparable else 'incomparable'
    return (
        f'<section class="part {kind}" id="{part.suite}"><h2>{escape(part.title)}</h2><div class="notes">{notes}</div>'
        f'{_overview(part)}{sections}</section>'
    )


def _overview(part: Part) -> str:
    """Links to the sections, each with a bar of how far it is."""
    items = []
    for section in part.sections:
        done = 100 * section.states[State.DONE] / max(1, section.total)
        failed = 100 * section.states[State.FAILED] / max(1, section.total)
        items.append(
            f'<li><a href="#{part.suite}-{section.name}"><b>{escape(section.title)}</b>'
            f'<span class="bar"><i style="width:{done:.1f}%"></i><i class="failed" style="width:{failed:.1f}%"></i>'
            f'</span><small>{escape(section.progress)}</small></a></li>'
        )
    return f'<ul class="overview">{"".join(items)}</ul>'


def _section(part: Part, section: Section) -> str:
    """An experiment; folded where nothing of it has been started."""
    badge = f' <span class="badge">{escape(part.badge)}</span>' if part.badge else ''
    notes = ''.join(f'<p>{escape(note)}</p>' for note in section.notes)
    failures = ''.join(f'<li><code>{escape(run)}</code>: {escape(error)}</li>' for run, error in section.failures)
    figures = ''.join(_figure(figure) for figure in section.figures)
    content = [
        notes,
        f'<div class="failures"><p>Failed:</p><ul>{failures}</ul></div>' if failures else '',
        *(_table(part, table) for table in section.tables if not table.folded),
        f'<div class="figures">{figures}</div>' if figures else '',
        *(_album(album) for album in section.albums),
        *(_table(part, table) for table in section.tables if table.folded),
    ]
    opened = ' open' if section.started else ''
    return (
        f'<details class="section" id="{part.suite}-{section.name}"{opened}><summary><h3>{escape(section.title)}{badge}'
        f'</h3><span>{escape(section.about)} · {escape(section.progress)}</span></summary>{"".join(content)}</details>'
    )


def _table(part: Part, table: Table) -> str:
    """A table in a box of its own, which scrolls where the screen is narrow."""
    heads = ''.join(
        f'<th scope="col" aria-sort="none"{"" if index < table.labels else " class=n"}>'
        f'<button type="button">{escape(column)}</button></th>'
        for index, column in enumerate(table.columns)
    )
    body = ''.join(_group(table, group) for group in table.groups)
    caption = escape(table.caption) + (f' <span class="badge">{escape(part.badge)}</span>' if part.badge else '')
    if any(cell.paper and cell.difference for row in table.rows for cell in row):
        caption += ". Below each number: the paper's (and ours minus it)"
    # The caption is outside of the box, where it does not scroll away.
    box = (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(table.caption)}"><table>'
        f'<thead><tr>{heads}</tr></thead>{body}</table></div>'
    )
    if table.folded:
        return f'<details class="more"><summary>{caption}</summary>{box}</details>'
    return f'<p class="caption">{caption}</p>{box}'


def _group(table: Table, group: Group) -> str:
    """One ``tbody``, the unit of sorting, with what it is sorted by."""
    rows = ''.join(
        f'<tr>{"".join(_cell(cell, index < table.labels, index == 0) for index, cell in enumerate(row))}</tr>'
        for row in group.rows
    )
    values = escape(json.dumps(group.sort_values(table.labels), ensure_ascii=False, separators=(',', ':')))
    kind = ' class="many"' if len(group.rows) > 1 else ''
    return f'<tbody{kind} data-sort="{values}">{rows}</tbody>'


def _cell(cell: Cell, label: bool, head: bool) -> str:
    text = escape(cell.text)
    if cell.mark:
        text += f' <span class="mark" aria-label="outside the tolerance">{cell.mark}</span>'
    if cell.spread:
        text += f'<small>{escape(cell.spread)}</small>'
    if cell.paper:
        # The caption tells what stands below a number; below a word it has to be said.
        below = f'{cell.paper} ({cell.difference})' if cell.difference else f'paper {cell.paper}'
        text += f'<small>{escape(below)}</small>'
    kinds = ' '.join(name for name, on in (('n', not label), ('missing', cell.missing), ('out', cell.outside)) if on)
    attributes = (f' class="{kinds}"' if kinds else '') + (f' title="{escape(cell.hint)}"' if cell.hint else '')
    return f'<th scope="row"{attributes}>{text}</th>' if head else f'<td{attributes}>{text}</td>'


def _figure(figure: Figure) -> str:
    return f'<figure><figcaption>{escape(figure.caption)}</figcaption>{figure.plot.svg()}</figure>'


def _album(album: Album) -> str:
    pictures = []
    for photo in album.photos:
        found = embed(photo.file)
        shown = (
            f'<p class="missing">The picture is not in its place any more: {escape(photo.file.name)}</p>'
            if found is None
            else f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(photo.caption)}"><img '
            f'loading="lazy" alt="{escape(photo.caption)}" width="{found.width}" height="{found.height}" '
            f'src="{found.uri}"></div>'
        )
        kind = escape(photo.kind)
        pictures.append(
            f'<figure class="picture {kind}">{shown}<figcaption>{escape(photo.caption)}</figcaption></figure>'
        )
    return f'<div class="album"><h4>{escape(album.title)}</h4>{"".join(pictures)}</div>'
