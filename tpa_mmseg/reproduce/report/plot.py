"""Small plots as SVG, with nothing but text: lines and points on linear or logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

# All lengths are units of the drawing; it is shown about as wide as a phone, so that the text stays readable there.
_WIDTH, _HEIGHT = 420, 290
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 22, 12, 46
_FONT, _LINE = 12, 19
_LETTER = 0.56 * _FONT
_TICKS = 5


@dataclass(frozen=True)
class Point:
    """One value. Args: x; y; what is shown on hover."""

    x: float
    y: float
    title: str


@dataclass(frozen=True)
class Series:
    """Values that belong together.

    Args:
        name: For the legend; empty for none.
        points: The values, in the order of a line.
        style: Number of color and marker.
        line: Whether points are connected.
        dashed: Whether the line is a broken one.
    """

    name: str
    points: tuple[Point, ...]
    style: int = 0
    line: bool = True
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """An axis. Args: label; whether it is logarithmic; values that it has to show; unit behind its numbers."""

    label: str
    log: bool = False
    include: tuple[float, ...] = ()
    unit: str = ''


@dataclass(frozen=True)
class Plot:
    """Series on two axes. Args: title; x; y; series."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]

    def svg(self) -> str:
        """The drawing. Colors come from ``plot.css``, so that they follow the page around it."""
        legend, legend_height = _legend(self.series)
        points = [point for series in self.series for point in series.points]
        x = _Scale(self.x, [point.x for point in points], _LEFT, _WIDTH - _RIGHT)
        y = _Scale(self.y, [point.y for point in points], _HEIGHT - _BOTTOM, _TOP)
        parts = [_grid(x, y), *(_draw(series, x, y) for series in self.series), legend]
        height = _HEIGHT + legend_height
        return (
            f'<svg class="plot" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
            f'aria-label="{escape(self.title)}" font-size="{_FONT}">{"".join(parts)}</svg>'
        )

    def svg_file(self) -> str:
        """The drawing with its colors inside, for a file of its own."""
        return self.svg().replace('<g', f'<style>{stylesheet()}</style><g', 1)


@cache
def stylesheet() -> str:
    """Colors of the drawings."""
    return (Path(__file__).parent / 'plot.css').read_text(encoding='utf-8')


class _Scale:
    """Places values on an axis. Args: axis; values; start and end of the axis in the drawing."""

    def __init__(self, axis: Axis, values: Sequence[float], start: float, end: float) -> None:
        self.axis, self._start, self._end = axis, start, end
        low, high = min((*values, *axis.include)), max((*values, *axis.include))
        self.ticks = _decades(low, high) if axis.log else _steps(low, high)
        # The axis reaches from tick to tick, unless that would leave much of it empty.
        self._low, self._high = self._map(min(low, self.ticks[0])), self._map(max(high, self.ticks[-1]))
        if self._low == self._high:
            self._low, self._high = self._low - 0.5, self._high + 0.5

    def _map(self, value: float) -> float:
        return math.log10(value) if self.axis.log else value

    def __call__(self, value: float) -> float:
        share = (self._map(value) - self._low) / (self._high - self._low)
        return round(self._start + share * (self._end - self._start), 1)


def _steps(low: float, high: float) -> list[float]:
    """Round numbers that enclose a range."""
    if low == high:
        low, high = low - 1, high + 1
    rough = (high - low) / _TICKS
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _decades(low: float, high: float) -> list[float]:
    """1, 2, 5 or only powers of ten inside a range; the range itself where it has none."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors, every in (((1, 2, 5), 1), ((1,), 1), ((1,), 2), ((1,), 4)):
        found = [factor * 10.0**power for power in powers if power % every == 0 for factor in factors]
        found = [value for value in found if low <= value <= high]
        if 2 <= len(found) <= 2 * _TICKS:
            return found
    return [low, high]


def tick_text(value: float, unit: str = '') -> str:
    """A number on an axis, short."""
    for size, letter in ((1e9, 'G'), (1e6, 'M'), (1e4, 'k')):
        if abs(value) >= size:
            return f'{value / (1e3 if letter == "k" else size):g}{letter}{unit}'
    return f'{value:g}{unit}'.replace('-', '−')


def _grid(x: _Scale, y: _Scale) -> str:
    """Lines, numbers and names of both axes."""
    left, right, top, bottom = _LEFT, _WIDTH - _RIGHT, _TOP, _HEIGHT - _BOTTOM
    parts = []
    for tick in y.ticks:
        place, kind = y(tick), 'zero' if tick == 0 else 'line'
        parts.append(f'<line class="{kind}" x1="{left}" x2="{right}" y1="{place}" y2="{place}"/>')
        parts.append(f'<text x="{left - 6}" y="{place + 4}" text-anchor="end">{tick_text(tick, y.axis.unit)}</text>')
    for tick in x.ticks:
        place = x(tick)
        parts.append(f'<line class="line" x1="{place}" x2="{place}" y1="{top}" y2="{bottom}"/>')
        label = tick_text(tick, x.axis.unit)
        parts.append(f'<text x="{place}" y="{bottom + 17}" text-anchor="middle">{label}</text>')
    parts.append(
        f'<text class="name" x="{(left + right) / 2}" y="{bottom + 37}" text-anchor="middle">{escape(x.axis.label)}'
        f'</text><text class="name" transform="translate(13 {(top + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        f'{escape(y.axis.label)}</text>'
    )
    return f'<g class="axes">{"".join(parts)}</g>'


def _draw(series: Series, x: _Scale, y: _Scale) -> str:
    places = [(x(point.x), y(point.y)) for point in series.points]
    parts = []
    if series.line and len(places) > 1:
        path = ' '.join(f'{left},{top}' for left, top in places)
        parts.append(f'<polyline points="{path}"/>')
    for (left, top), point in zip(places, series.points, strict=True):
        parts.append(_marker(series.style, left, top, escape(point.title)))
    return f'<g class="{_class(series)}">{"".join(parts)}</g>'


def _class(series: Series) -> str:
    kind = 'lines' if series.line else 'points'
    return f'series s{series.style % 8} {kind}{" dashed" if series.dashed else ""}'


def _marker(style: int, left: float, top: float, title: str = '') -> str:
    """Circle, square, triangle or diamond: series differ in more than color."""
    hover = f'<title>{title}</title>' if title else ''
    if style % 4 == 0:
        return f'<circle cx="{left}" cy="{top}" r="3.6">{hover}</circle>'
    corners = {
        1: ((-3.3, -3.3), (3.3, -3.3), (3.3, 3.3), (-3.3, 3.3)),
        2: ((0, -4.4), (4.2, 3), (-4.2, 3)),
        3: ((0, -4.8), (4.8, 0), (0, 4.8), (-4.8, 0)),
    }[style % 4]
    path = ' '.join(f'{left + dx:.1f},{top + dy:.1f}' for dx, dy in corners)
    return f'<polygon points="{path}">{hover}</polygon>'


def _legend(series: Sequence[Series]) -> tuple[str, int]:
    """Names of the series below the plot, on as many lines as they need, and the height that takes."""
    named = [one for one in series if one.name]
    if not named:
        return '', 0
    parts, left, line = [], _LEFT, 0
    for one in named:
        width = 30 + _LETTER * len(one.name) + 12
        if left > _LEFT and left + width > _WIDTH:
            left, line = _LEFT, line + 1
        top = _HEIGHT + line * _LINE + 8
        stroke = f'<polyline points="{left},{top} {left + 24},{top}"/>' if one.line else ''
        parts.append(f'<g class="{_class(one)}">{stroke}{_marker(one.style, left + 12, top)}</g>')
        parts.append(f'<text x="{left + 30}" y="{top + 4}">{escape(one.name)}</text>')
        left += width
    return f'<g class="legend">{"".join(parts)}</g>', (line + 1) * _LINE + 6
