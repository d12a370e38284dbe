"""Figures by Altair: interactive on the page, and as SVG, PNG and PDF for a paper."""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt
import pandas as pd

#: One color for each benchmark or backbone, in the order of the tables.
BENCHMARKS, BACKBONES = (alt.Color(f'{name}:N', title=None, sort=None) for name in ('benchmark', 'backbone'))
_FORMATS = {
    'gain': '+.2f',
    'follows': '.2f',
    **dict.fromkeys(('host_iou', 'tpa_iou', 'expected'), '.1f'),
    **dict.fromkeys(('share', 'covered', 'images'), ',.0f'),
    **dict.fromkeys(('median', 'low', 'high'), '.3g'),
}
# Ticks of logarithmic axes.
_ROUND = [step * 10**power for power in range(6) for step in (1, 2, 5)]
_TITLES = {'host_iou': 'Host IoU', 'tpa_iou': 'TPA IoU', 'at_least': 'At least', 'source': 'Seen by'}


@dataclass(frozen=True)
class Figure:
    """A figure. Args: name of its files; caption; chart."""

    name: str
    caption: str
    chart: alt.Chart

    def spec(self) -> dict:
        """The figure for a page, as wide as its place."""
        spec = self.chart.to_dict()
        # The address of the schema is only a name, but a page without any address is easier to trust.
        spec.pop('$schema', None)
        return {**spec, 'width': 'container', 'autosize': {'type': 'fit-x', 'contains': 'padding'}}


def hover(*names: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip(name, title=_TITLES.get(name, name.replace('_', ' ').capitalize()), format=_FORMATS.get(name, ''))
        for name in names
    ]


def axes(x: str, title: str, y: str, y_title: str, log: bool = False) -> dict:
    """Axes that leave room for marks at their ends."""
    scale = alt.Scale(type='log', nice=False, padding=14) if log else alt.Scale(zero=False, nice=False, padding=14)
    axis = alt.Axis(grid=False, format='~s', values=_ROUND) if log else alt.Axis(tickCount=6)
    return {
        'x': alt.X(f'{x}:Q', title=title, scale=scale, axis=axis),
        'y': alt.Y(f'{y}:Q', title=y_title, scale=alt.Scale(zero=True, nice=False, padding=12)),
    }


def layered(*layers: alt.Chart, zero: bool = False) -> alt.Chart:
    """Layers in the size of all figures, over a line at zero."""
    line = alt.Chart(pd.DataFrame({'zero': [0.0]})).mark_rule(strokeDash=[2, 3]).encode(y='zero:Q')
    return alt.layer(*([line] if zero else []), *layers).properties(width=420, height=260)


def dashed(column: str, solid: str, broken: str) -> alt.StrokeDash:
    """Solid lines for one value of a column, broken ones for another."""
    scale = alt.Scale(domain=[solid, broken], range=[[1, 0], [5, 4]])
    # Without a color to fill with, lines in a legend have none at all.
    gray = {'symbolFillColor': '#8a94a3', 'symbolStrokeColor': '#8a94a3'}
    legend = alt.Legend(symbolType='stroke', symbolStrokeWidth=2, symbolSize=250, **gray)
    return alt.StrokeDash(f'{column}:N', title=None, scale=scale, legend=legend)


def slug(name: str) -> str:
    """A name as part of a file's name."""
    return ''.join(sign if sign.isalnum() and sign.isascii() else '-' for sign in name).strip('-').lower() or 'x'
