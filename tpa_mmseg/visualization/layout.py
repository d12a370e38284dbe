"""Panels with titles above a legend, on one white canvas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from ..datasets.palette import WHITE
from .fonts import font_for, legible

_INK, _FRAME, _HATCH = (25, 25, 25), (120, 120, 120), (190, 190, 190)
# Panels side by side may be this wide; a strip gets a line of its own and twice the width.
PANEL, STRIP = 640, 1280
# Wider than this, panels are stacked instead of put side by side.
_STRIP_ASPECT = 3.0
# Panels below this share of the limit are enlarged by a whole factor, and no side is thinner than this.
_SMALL, _THIN = 0.75, 16


class Panel(NamedTuple):
    """One picture with its title."""

    title: str
    image: Image.Image


class Entry(NamedTuple):
    """One item of a legend: a color, or hatching where it is None, and what it stands for."""

    color: tuple[int, int, int] | None
    text: str


class Legend(NamedTuple):
    """What the colors of some panels mean."""

    title: str
    entries: Sequence[Entry]


def panel_size(height: int, width: int) -> tuple[int, int]:
    """Height and width at which a map of this size is shown."""
    limit = STRIP if width > _STRIP_ASPECT * height else PANEL
    longest = max(height, width)
    factor = limit / longest if longest > limit else max(1, int(_SMALL * limit) // longest)
    return max(_THIN, round(height * factor)), max(_THIN, round(width * factor))


def compose(panels: Sequence[Panel], legends: Sequence[Legend], columns: int | None = None) -> Image.Image:
    """Puts panels of one size into a grid, and the legends below them.

    Args:
        panels: The panels, row by row.
        legends: What their colors mean.
        columns: Panels of a row; by default all side by side, and strips below each other.
    """
    width, height = panels[0].image.size
    if columns is None:
        columns = 1 if width > _STRIP_ASPECT * height else len(panels)
    # The text grows with the canvas, because a wide picture is printed smaller.
    size = min(36, max(14, columns * width // 85))
    gap, line = size // 2, round(1.5 * size)
    cell = max(width, *(_text_width(panel.title, size, bold=True) for panel in panels))
    total = max(columns * (cell + gap) - gap, 24 * size)
    indent = max(_text_width(legend.title, size, bold=True) for legend in legends) + size
    blocks = [_draw_legend(legend, total, indent, size) for legend in legends]
    body = -(-len(panels) // columns) * (line + height + gap)
    canvas = Image.new('RGB', (total + 2 * gap, gap + body + sum(block.height + gap for block in blocks)), WHITE)
    draw = ImageDraw.Draw(canvas)
    for index, panel in enumerate(panels):
        row, column = divmod(index, columns)
        center, top = gap + column * (cell + gap) + cell // 2, gap + row * (line + height + gap)
        _write(draw, (center, top + line // 2), panel.title, size, 'mm', bold=True)
        left, top = center - width // 2, top + line
        canvas.paste(panel.image, (left, top))
        draw.rectangle((left - 1, top - 1, left + width, top + height), outline=_FRAME)
    top = gap + body
    for block in blocks:
        canvas.paste(block, (gap, top))
        top += block.height + gap
    return canvas


def wrap(entries: Sequence[Entry], width: int, size: int) -> list[list[Entry]]:
    """Breaks a legend into lines of at most ``width`` pixels, and shortens an entry that is wider than that."""
    lines: list[list[Entry]] = [[]]
    used = 0
    for entry in entries:
        room = width - _swatch(size)
        entry = Entry(entry.color, _shorten(' '.join(entry.text.split()), room, size))
        needed = _swatch(size) + _text_width(entry.text, size)
        if lines[-1] and used + needed > width:
            lines.append([])
            used = 0
        lines[-1].append(entry)
        used += needed + size
    return lines


def hatched(size: tuple[int, int], spacing: int = 8) -> Image.Image:
    """White with gray diagonals: what is ignored. Args: size, width and height."""
    width, height = size
    diagonal = (np.arange(height)[:, None] + np.arange(width)) % spacing == 0
    return Image.fromarray(np.where(diagonal[..., None], _HATCH, WHITE).astype(np.uint8))


def _draw_legend(legend: Legend, width: int, indent: int, size: int) -> Image.Image:
    """The title in a column of its own, the entries beside it on as many lines as they need."""
    lines, step = wrap(legend.entries, width - indent, size), round(1.5 * size)
    block = Image.new('RGB', (width, step * len(lines)), WHITE)
    draw = ImageDraw.Draw(block)
    _write(draw, (0, step // 2), legend.title, size, 'lm', bold=True)
    for index, line in enumerate(lines):
        left, top, middle = indent, step * index + (step - size) // 2, step * index + step // 2
        for entry in line:
            swatch = hatched((size, size), max(4, size // 4)) if entry.color is None else entry.color
            block.paste(swatch, (left, top, left + size, top + size))
            draw.rectangle((left, top, left + size - 1, top + size - 1), outline=_FRAME)
            _write(draw, (left + _swatch(size), middle), entry.text, size, 'lm')
            left += _swatch(size) + _text_width(entry.text, size) + size
    return block


def _swatch(size: int) -> int:
    """Width of the colored square and the space between it and its text."""
    return round(1.4 * size)


def _shorten(text: str, width: int, size: int) -> str:
    if _text_width(text, size) <= width:
        return text
    while text and _text_width(text + '…', size) > width:
        text = text[:-1]
    return text + '…'


def _text_width(text: str, size: int, bold: bool = False) -> int:
    text = legible(text)
    return round(font_for(text, size, bold).getlength(text))


def _write(
    draw: ImageDraw.ImageDraw, place: tuple[int, int], text: str, size: int, anchor: str, bold: bool = False
) -> None:
    text = legible(text)
    draw.text(place, text, fill=_INK, font=font_for(text, size, bold), anchor=anchor)
