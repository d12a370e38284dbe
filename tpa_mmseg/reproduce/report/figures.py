"""Figures from frames, by Altair: interactive on the page, and as SVG, PNG and PDF for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

_WIDTH, _HEIGHT = 420, 260
_FORMATS = {'gain': '+.2f', 'host_iou': '.1f', 'tpa_iou': '.1f', 'share': '.0f', 'support': ',.0f', 'median': '.3g'}
_TITLES = {'host_iou': 'Host IoU', 'tpa_iou': 'TPA IoU', 'at_least': 'At least', 'source': 'Seen by'}
_CHANGE = alt.Color(
    'change:N', title=None, scale=alt.Scale(domain=['gains', 'loses'], range=['#2a9d62', '#d1495b']), legend=None
)


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


def _hover(*names: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip(name, title=_TITLES.get(name, name.replace('_', ' ').capitalize()), format=_FORMATS.get(name, ''))
        for name in names
    ]


def _zero() -> alt.Chart:
    return alt.Chart(pd.DataFrame({'zero': [0.0]})).mark_rule(strokeDash=[2, 3], opacity=0.6).encode(y='zero:Q')


def _finish(*layers: alt.Chart) -> alt.Chart:
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT)


def gain_figures(cells: pd.DataFrame) -> Iterator[Figure]:
    """Gain against every axis of an experiment: a line for each benchmark, broken where it is the paper's."""
    gains = cells[(cells.quantity == 'gain') & (cells.axis.fillna('') != '') & cells.value.notna()]
    for axis, found in gains.groupby('axis', sort=False):
        lines = found.melt(
            ['benchmark', 'title', 'value'], ['ours', 'paper'], var_name='source', value_name='gain'
        ).dropna()
        if not (lines.source == 'ours').any():
            continue
        lines['value'] *= 100 if axis.endswith('%') else 1
        dash = alt.StrokeDash('source:N', title=None, scale=alt.Scale(domain=['ours', 'paper'], range=[[1, 0], [5, 4]]))
        chart = alt.Chart(lines).encode(
            x=alt.X('value:Q', title=axis, scale=alt.Scale(zero=False, nice=False, padding=12)),
            y=alt.Y('gain:Q', title='Gain in mIoU'),
            color=alt.Color('benchmark:N', title=None),
            tooltip=_hover('benchmark', 'title', 'source', 'gain'),
        )
        name = f'{found.experiment.iloc[0]}-{axis.split()[0].lower()}' if gains.axis.nunique() > 1 else None
        marks = (
            chart.mark_point(filled=True, size=70)
            if axis.startswith('Seed')
            else chart.mark_line(point=alt.OverlayMarkDef(size=55)).encode(strokeDash=dash)
        )
        title = axis.removesuffix(', %')
        caption = f'Gain against {title if title[1:2].isspace() else title[0].lower() + title[1:]}'
        yield Figure(name or found.experiment.iloc[0], caption, _finish(_zero(), marks))


def repetition_figures(frame: pd.DataFrame) -> Iterator[Figure]:
    """Share of classes that are seen again against the size of the pool, a figure for each benchmark."""
    for benchmark, found in frame.groupby('benchmark', sort=False):
        dash = alt.Scale(domain=['labels', 'anchors'], range=[[1, 0], [5, 4]])
        chart = (
            alt.Chart(found.assign(at_least='≥ ' + found.at_least.astype(str)))
            .mark_line(point=alt.OverlayMarkDef(size=45))
            .encode(
                x=alt.X('images:Q', title='Images in the pool', scale=alt.Scale(type='log')),
                y=alt.Y('share:Q', title='Classes, %', scale=alt.Scale(domain=[0, 100])),
                color=alt.Color('at_least:N', title='Images', sort=None),
                strokeDash=alt.StrokeDash('source:N', title='Seen by', scale=dash),
                tooltip=_hover('source', 'at_least', 'images', 'share'),
            )
        )
        yield Figure(f'repetition-{slug(benchmark)}', f'{benchmark}: classes seen again', _finish(chart))


def class_figures(frame: pd.DataFrame) -> Iterator[Figure]:
    """Gain of each class against how well the host knew it and how many pixels it has, for each benchmark."""
    scored = frame.dropna(subset=['gain', 'host_iou'])
    scored = scored.assign(change=scored.gain.map(lambda gain: 'gains' if gain >= 0 else 'loses'))
    for benchmark, found in scored.groupby('benchmark', sort=False):
        for column, title, kind in (
            ('host_iou', 'IoU of the host alone', 'linear'),
            ('support', 'Labeled pixels', 'log'),
        ):
            shown = found[found[column] > 0] if kind == 'log' else found
            if shown.empty:
                continue
            chart = (
                alt.Chart(shown)
                .mark_circle(size=70, opacity=0.75)
                .encode(
                    x=alt.X(f'{column}:Q', title=title, scale=alt.Scale(type=kind, zero=False, nice=False, padding=12)),
                    y=alt.Y('gain:Q', title='Gain in IoU'),
                    color=_CHANGE,
                    tooltip=_hover('class', 'host_iou', 'tpa_iou', 'gain', 'support'),
                )
            )
            caption = f'{benchmark}: gain of each class against {"base IoU" if kind == "linear" else "support"}'
            name = f'classes-{slug(benchmark)}-{"base" if kind == "linear" else "support"}'
            yield Figure(name, caption, _finish(_zero(), chart))


def cost_figures(frame: pd.DataFrame, steps: Sequence[str]) -> Iterator[Figure]:
    """Milliseconds of every step with their quartiles. Args: steps: their names for people, in order."""
    found = frame[frame.step.isin(steps) & frame['median'].notna()]
    if found.empty:
        return
    chart = alt.Chart(found).encode(
        y=alt.Y('step:N', title=None, sort=list(steps), axis=alt.Axis(labelLimit=220)),
        yOffset=alt.YOffset('backbone:N', sort=None),
        tooltip=_hover('host', 'backbone', 'step', 'median', 'low', 'high', 'paper'),
    )
    bars = chart.mark_bar().encode(
        x=alt.X('median:Q', title='Milliseconds per image'), color=alt.Color('backbone:N', title=None, sort=None)
    )
    spread = chart.mark_rule(strokeWidth=1.5).encode(x='low:Q', x2='high:Q')
    yield Figure('cost', 'Time of every step: median and quartiles', _finish(bars, spread))


def slug(name: str) -> str:
    """A name as part of a file's name."""
    return ''.join(sign if sign.isalnum() and sign.isascii() else '-' for sign in name).strip('-').lower() or 'x'
