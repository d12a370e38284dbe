"""Figures from frames, by Altair: interactive on the page, and as SVG, PNG and PDF for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

_FORMATS = {'gain': '+.2f', 'host_iou': '.1f', 'tpa_iou': '.1f', 'share': '.0f', 'support': ',.0f', 'median': '.3g'}
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


def axes(x: str, title: str, y: str, y_title: str, log: bool = False, **y_scale) -> dict:
    """Axes that leave room for marks at their ends; powers alone on a logarithmic one."""
    scale = alt.Scale(type='log', nice=False, padding=14) if log else alt.Scale(zero=False, nice=False, padding=14)
    axis = alt.Axis(grid=False, format='~s', tickCount=5) if log else alt.Axis(tickCount=6)
    y_scale = alt.Scale(**y_scale) if y_scale else alt.Scale(zero=True, nice=False, padding=12)
    return {
        'x': alt.X(f'{x}:Q', title=title, scale=scale, axis=axis),
        'y': alt.Y(f'{y}:Q', title=y_title, scale=y_scale),
    }


def finish(*layers: alt.Chart, zero: bool = False) -> alt.Chart:
    """Layers in the size of all figures, over a line at zero."""
    line = alt.Chart(pd.DataFrame({'zero': [0.0]})).mark_rule(strokeDash=[2, 3]).encode(y='zero:Q')
    return alt.layer(*([line] if zero else []), *layers).properties(width=420, height=260)


def _dashed(column: str, solid: str, broken: str) -> alt.StrokeDash:
    scale = alt.Scale(domain=[solid, broken], range=[[1, 0], [5, 4]])
    legend = alt.Legend(symbolType='stroke', symbolStrokeColor='#8a94a3', symbolStrokeWidth=2, symbolSize=250)
    return alt.StrokeDash(f'{column}:N', title=None, scale=scale, legend=legend)


def gain_figures(cells: pd.DataFrame) -> Iterator[Figure]:
    """Gain against every axis of an experiment: a line for each benchmark, broken where it is the paper's."""
    gains = cells[(cells.quantity == 'gain') & cells.axis.ne('') & cells.value.notna()]
    for axis, found in gains.groupby('axis', sort=False):
        names = ['benchmark', 'title', 'value']
        lines = found.melt(names, ['ours', 'paper'], var_name='source', value_name='gain').dropna()
        if not lines.source.eq('ours').any():
            continue
        lines['value'] *= 100 if axis.endswith('%') else 1
        chart = alt.Chart(lines).encode(
            **axes('value', axis, 'gain', 'Gain in mIoU'),
            color=alt.Color('benchmark:N', title=None, sort=None),
            tooltip=hover('benchmark', 'title', 'source', 'gain'),
        )
        marks = chart.mark_line(point=alt.OverlayMarkDef(size=55))
        if axis.startswith('seed'):
            marks = chart.mark_point(filled=True, size=70)
        elif lines.source.nunique() > 1:
            marks = marks.encode(strokeDash=_dashed('source', 'ours', 'paper'))
        experiment = found.experiment.iloc[0]
        name = f'{experiment}-{slug(axis)}' if gains.axis.nunique() > 1 else experiment
        yield Figure(name, f'Gain against {axis.removesuffix(", %")}', finish(marks, zero=True))


def consistency_figures(frame: pd.DataFrame) -> Iterator[Figure]:
    """Gain of consistent TPA over the paper's against how consistent its labels are. Args: frame: from frames."""
    if frame.empty:
        return
    found = frame.rename(columns={'Consistent TPA': 'gain', 'kappa_0 / kappa_inf': 'share', 'Host': 'host'})
    places = axes('share', 'kappa_0 / kappa_inf', 'gain', "Gain in mIoU over the paper's TPA")
    tips = [*hover('host'), alt.Tooltip('Benchmark:N'), *hover('gain'), alt.Tooltip('share:Q', format='.2f')]
    points = alt.Chart(found).mark_point(filled=True, size=70).encode(**places, tooltip=tips)
    points = points.encode(color=alt.Color('Benchmark:N', title=None, sort=None))
    yield Figure('consistency', 'Gain of consistent TPA where labels follow the image less', finish(points, zero=True))


def cost_figures(frame: pd.DataFrame, steps: Sequence[str]) -> Iterator[Figure]:
    """Milliseconds of every step with their quartiles. Args: steps: their names for people, in order."""
    found = frame[frame.step.isin(steps) & frame['median'].notna()]
    if found.empty:
        return
    chart = alt.Chart(found).encode(
        y=alt.Y('step:N', title=None, sort=list(steps), axis=alt.Axis(labelLimit=220)),
        yOffset=alt.YOffset('backbone:N', sort=None),
        tooltip=hover('host', 'backbone', 'step', 'median', 'low', 'high', 'paper'),
    )
    color = alt.Color('backbone:N', title=None, sort=None)
    bars = chart.mark_bar().encode(x=alt.X('median:Q', title='Milliseconds per image'), color=color)
    spread = chart.mark_rule(strokeWidth=1.5).encode(x='low:Q', x2='high:Q')
    yield Figure('cost', 'Time of every step: median and quartiles', finish(bars, spread))


def slug(name: str) -> str:
    """A name as part of a file's name."""
    return ''.join(sign if sign.isalnum() and sign.isascii() else '-' for sign in name).strip('-').lower() or 'x'
