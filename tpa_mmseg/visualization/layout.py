"""Panels with titles above a legend, on one white canvas."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ..datasets.palette import WHITE
from .fonts import Fonts, load_fonts

_INK, _FRAME, _HATCH = (25, 25, 25), (120, 120, 120), (190, 190, 190)
# Panels side by side may be this wide; a strip gets its own line and twice the width.
PANEL, STRIP = 640, 1280
# Wider than this, panels are stacked instead of put side by side.
_STRIP_ASPECT = 3.0
# Panels below this share of the limit are enlarged by a whole factor, and no side is thinner than this.
_SMALL, _THIN = 0.75, 16


class Panel(NamedTuple):
    """An image with its title."""

    title: str
    image: Image.Image


class LegendEntry(NamedTuple):
    """A color, or hatching if it is None, and its meaning."""

    color: tuple[int, int, int] | None
    text: str


class Legend(NamedTuple):
    """The meaning of the colors of some panels."""

    title: str
    entries: Sequence[LegendEntry]


def panel_size(height: int, width: int) -> tuple[int, int]:
    """Returns the height and width at which a map of this size is shown."""
    limit = STRIP if width > _STRIP_ASPECT * height else PANEL
    longest = max(height, width)
    factor = limit / longest if longest > limit else max(1, int(_SMALL * limit) // longest)
    return max(_THIN, round(height * factor)), max(_THIN, round(width * factor))


def compose(
    panels: Sequence[Panel],
    legends: Sequence[Legend],
    columns: int | None = None,
    font: str | os.PathLike | None = None,
) -> Image.Image:
    """Arranges panels of one size in a grid, with the legends below.

    Args:
        panels: The panels, row by row.
        legends: The meaning of their colors.
        columns: Number of panels in a row. Default: all side by side; wide strips one below the other.
        font: As in :func:`~.fonts.load_fonts`.
    """
    width, height = panels[0].image.size
    if columns is None:
        columns = 1 if width > _STRIP_ASPECT * height else len(panels)
    panels = [Panel(_printable(panel.title), panel.image) for panel in panels]
    legends = [
        Legend(legend.title, [LegendEntry(entry.color, _printable(entry.text)) for entry in legend.entries])
        for legend in legends
    ]
    # The text grows with the canvas, because a wide figure is printed smaller.
    size = min(36, max(14, columns * width // 85))
    texts = [panel.title for panel in panels] + [entry.text for legend in legends for entry in legend.entries]
    fonts = load_fonts(size, font, ''.join(texts))
    gap, line = size // 2, round(1.5 * size)
    cell = max(width, *(_text_width(panel.title, fonts.bold) for panel in panels))
    total = max(columns * (cell + gap) - gap, 24 * size)
    indent = max(_text_width(legend.title, fonts.bold) for legend in legends) + size
    blocks = [_draw_legend(legend, total, indent, fonts) for legend in legends]
    body = -(-len(panels) // columns) * (line + height + gap)
    canvas = Image.new('RGB', (total + 2 * gap, gap + body + sum(block.height + gap for block in blocks)), WHITE)
    draw = ImageDraw.Draw(canvas)
    for index, panel in enumerate(panels):
        row, column = divmod(index, columns)
        center, top = gap + column * (cell + gap) + cell // 2, gap + row * (line + height + gap)
        draw.text((center, top + line // 2), panel.title, _INK, fonts.bold, anchor='mm')
        left, top = center - width // 2, top + line
        canvas.paste(panel.image, (left, top))
        draw.rectangle((left - 1, top - 1, left + width, top + height), outline=_FRAME)
    top = gap + body
    for block in blocks:
        canvas.paste(block, (gap, top))
        top += block.height + gap
    return canvas


def wrap(entries: Sequence[LegendEntry], width: int, fonts: Fonts) -> list[list[LegendEntry]]:
    """Breaks a legend into lines of at most ``width`` pixels, and shortens an entry that is wider than that."""
    lines: list[list[LegendEntry]] = [[]]
    used, swatch = 0, _swatch(fonts.size)
    for entry in entries:
        entry = LegendEntry(entry.color, _shorten(entry.text, width - swatch, fonts.regular))
        needed = swatch + _text_width(entry.text, fonts.regular)
        if lines[-1] and used + needed > width:
            lines.append([])
            used = 0
        lines[-1].append(entry)
        used += needed + fonts.size
    return lines


def hatched(size: tuple[int, int], spacing: int = 8) -> Image.Image:
    """Returns white with gray diagonals, for pixels that are ignored. Args: size: Width and height."""
    width, height = size
    diagonal = (np.arange(height)[:, None] + np.arange(width)) % spacing == 0
    return Image.fromarray(np.where(diagonal[..., None], _HATCH, WHITE).astype(np.uint8))


def _draw_legend(legend: Legend, width: int, indent: int, fonts: Fonts) -> Image.Image:
    """Draws the title in the first column, and the entries beside it on as many lines as they need."""
    size = fonts.size
    lines, step = wrap(legend.entries, width - indent, fonts), round(1.5 * size)
    block = Image.new('RGB', (width, step * len(lines)), WHITE)
    draw = ImageDraw.Draw(block)
    draw.text((0, step // 2), legend.title, _INK, fonts.bold, anchor='lm')
    for index, line in enumerate(lines):
        left, top, middle = indent, step * index + (step - size) // 2, step * index + step // 2
        for entry in line:
            swatch = hatched((size, size), max(4, size // 4)) if entry.color is None else entry.color
            block.paste(swatch, (left, top, left + size, top + size))
            draw.rectangle((left, top, left + size - 1, top + size - 1), outline=_FRAME)
            draw.text((left + _swatch(size), middle), entry.text, _INK, fonts.regular, anchor='lm')
            left += _swatch(size) + _text_width(entry.text, fonts.regular) + size
    return block


def _swatch(size: int) -> int:
    """Returns the width of the colored square and of the space between it and its text."""
    return round(1.4 * size)


def _printable(text: str) -> str:
    """Returns the text on one line, without code points that cannot be encoded."""
    return ' '.join(text.encode('utf-8', 'replace').decode('utf-8').split())


def _shorten(text: str, width: int, font: ImageFont.FreeTypeFont) -> str:
    if _text_width(text, font) <= width:
        return text
    while text and _text_width(text + '…', font) > width:
        text = text[:-1]
    return text + '…'


def _text_width(text: str, font: ImageFont.FreeTypeFont) -> int:
    return round(font.getlength(text))
