"""Figures by Altair, as ``figures.yaml`` has them: interactive on the page, and as SVG, PNG and PDF for a paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import altair as alt
import pandas as pd
import yaml

_KNOWN = yaml.safe_load(Path(__file__).with_suffix('.yaml').read_text(encoding='utf-8'))
_ZERO = {
    'data': {'values': [{'zero': 0.0}]},
    'mark': {'type': 'rule', 'strokeDash': [2, 3]},
    'encoding': {'y': {'field': 'zero', 'type': 'quantitative'}},
}


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


def draw(name: str, kind: str, frame: pd.DataFrame, of: str = '', **channels: dict) -> Figure:
    """Returns a figure, all of them in the same size.

    Args:
        name: Name of its files.
        kind: Its name in ``figures.yaml``.
        frame: Its data.
        of: What it is of, for the caption.
        channels: What differs from there, such as the title of an axis.
    """
    known = _KNOWN['figures'][kind]
    encoding = {name: {**channel, **channels.get(name, {})} for name, channel in known['encoding'].items()}
    encoding['tooltip'] = [{'field': name, **_KNOWN['tooltips'][name]} for name in known['tooltip']]
    layers = [{'encoding': encoding, 'layer': known['layer']}]
    chart = alt.LayerChart.from_dict({'layer': [_ZERO, *layers] if known.get('zero') else layers})
    chart.data = frame
    return Figure(name, known['caption'].format(of=of), chart.properties(width=420, height=260))


def slug(name: str) -> str:
    """A name as part of a file's name."""
    return ''.join(sign if sign.isalnum() and sign.isascii() else '-' for sign in name).strip('-').lower() or 'x'
