"""What the page shows of a result: panels, and a table with one row per class."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

from ..apis import Result
from ..apis.picture import Picture
from ..apis.render import class_counts
from ..visualization import DIFFERENCE_COLORS, Difference, class_palette, difference_map, draw_anchors, panel_size
from ..visualization.panels import label_panel

#: The panels: part of the page, and title.
PANELS = {'host': 'Host', 'tpa': 'Host + TPA', 'difference': 'Difference', 'input': 'Picture', 'anchors': 'Anchors'}
# Height of a picture to click on, in pixels.
_THUMBNAIL = 64


@dataclass(frozen=True)
class View:
    """One result, ready to be shown.

    Args:
        panels: Address of an image for each of :data:`PANELS`.
        rows: One per class: ``name``, ``color``, ``host`` and ``tpa`` (shares in percent), ``here`` and ``bank``
            (anchors in this picture and in all), ``prototype`` (whether there is one).
        changed: Share of the pixels to which TPA gave another class.
        bank: The bank in one sentence.
    """

    panels: dict[str, str]
    rows: list[dict]
    changed: float
    bank: str


@dataclass(frozen=True)
class Stills:
    """What of a view does not follow alpha and lambda. Args: panels: as in a view; anchors: (C,) of each class."""

    panels: dict[str, str]
    anchors: np.ndarray


def stills_of(result: Result) -> Stills:
    """The picture, the host and the anchors of a result with TPA."""
    size, colors = _layout(result)
    picture, anchors = result.picture.at(size), result.anchors()
    panels = {
        'input': picture,
        'host': label_panel(result.host_labels, colors, size),
        'anchors': draw_anchors(picture.convert('L').convert('RGB'), anchors, colors),
    }
    return Stills(_addresses(panels), class_counts(anchors, len(result.class_names)))


def view_of(result: Result, stills: Stills) -> View:
    """The view of a result with TPA. Args: stills: of the same picture and ``k``."""
    size, colors = _layout(result)
    changes = difference_map(result.host_labels, result.labels)
    panels = {
        'tpa': label_panel(result.labels, colors, size),
        'difference': label_panel(changes, DIFFERENCE_COLORS, size),
    }
    return View(stills.panels | _addresses(panels), _rows(result, stills.anchors), result.changed(), _describe(result))


def _layout(result: Result) -> tuple[tuple[int, int], np.ndarray]:
    """Height and width of panels, and the color of each class."""
    return panel_size(*result.labels.shape), class_palette(len(result.palette), result.palette)


def _addresses(panels: dict[str, Image.Image]) -> dict[str, str]:
    return {part: data_url(panel) for part, panel in panels.items()}


def _rows(result: Result, anchors: np.ndarray) -> list[dict]:
    columns = zip(result.areas(), result.coverage(), result.palette, anchors, strict=True)
    return [
        {
            'name': area.name,
            'color': css_color(color),
            'host': round(100 * area.host_share, 1),
            'tpa': round(100 * area.share, 1),
            'here': int(count),
            'bank': known.anchors,
            'prototype': '✓' if known.covered else '–',
        }
        for area, known, color, count in columns
    ]


def _describe(result: Result) -> str:
    covered = sum(known.covered for known in result.coverage())
    anchors = sum(known.anchors for known in result.coverage())
    return (
        f'The bank of {result.bank.images} pictures covers {covered} of {len(result.class_names)} classes with '
        f'{anchors:,} anchors.'
    )


def difference_colors() -> dict[str, str]:
    """What the colors of the difference mean: CSS color of each word."""
    kinds = Difference.UNCHANGED, Difference.CHANGED
    return {kind.name.lower(): css_color(DIFFERENCE_COLORS[kind]) for kind in kinds}


def css_color(color: np.ndarray | list[int] | tuple[int, ...]) -> str:
    red, green, blue = (int(value) for value in color)
    return f'#{red:02x}{green:02x}{blue:02x}'


def thumbnail(picture: Picture) -> Image.Image:
    """A picture to click on."""
    height, width = picture.load()['img_shape'][:2]
    return picture.at((_THUMBNAIL, max(1, round(width * _THUMBNAIL / height))))


def data_url(image: Image.Image) -> str:
    """A picture as a part of the page itself: no file is written for it."""
    buffer = io.BytesIO()
    image.save(buffer, format='PNG', compress_level=1)  # it does not go far, and a slider waits for it
    return f'data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}'
