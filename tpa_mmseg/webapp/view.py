"""The view of a segmentation: panels, and a table with one row per class."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

from ..apis import Segmentation
from ..apis.images import ImageSource
from ..apis.render import class_counts
from ..visualization import DIFFERENCE_COLORS, Difference, class_palette, difference_map, draw_anchors, panel_size
from ..visualization.panels import label_panel

#: Part of the page -> title of the panel.
PANELS = {'host': 'Host', 'tpa': 'Host + TPA', 'difference': 'Difference', 'input': 'Image', 'anchors': 'Anchors'}
# Height of an image to click on, in pixels.
_THUMBNAIL = 64


@dataclass(frozen=True)
class View:
    """One segmentation, ready for display.

    Args:
        panels: Address of an image for each of :data:`PANELS`.
        rows: One per class: ``name``, ``color``, ``host`` and ``tpa`` (shares in percent), ``here`` and ``bank``
            (anchors in this image and in all), ``prototype`` (whether there is one).
        changed: Fraction of the pixels to which TPA gave another class.
        bank: The bank in one sentence.
    """

    panels: dict[str, str]
    rows: list[dict]
    changed: float
    bank: str


@dataclass(frozen=True)
class Stills:
    """The parts of a view that do not depend on alpha and lambda. Args: panels: As in a view; anchors: (C,) counts."""

    panels: dict[str, str]
    anchors: np.ndarray


def stills_of(result: Segmentation, anchors: np.ndarray) -> Stills:
    """Draw the image, the host and the anchors. Args: anchors: (H, W) class of every anchor, -1 elsewhere."""
    size, colors = _layout(result)
    image = result.image.resized(size)
    panels = {
        'input': image,
        'host': label_panel(result.host_labels, colors, size),
        'anchors': draw_anchors(image.convert('L').convert('RGB'), anchors, colors),
    }
    return Stills(_addresses(panels), class_counts(anchors, len(result.classes)))


def view_of(result: Segmentation, stills: Stills) -> View:
    """Draw a segmentation with TPA. Args: stills: Those of the same image and ``k``."""
    size, colors = _layout(result)
    changes = difference_map(result.host_labels, result.labels)
    panels = {
        'tpa': label_panel(result.labels, colors, size),
        'difference': label_panel(changes, DIFFERENCE_COLORS, size),
    }
    rows = _rows(result, stills.anchors)
    return View(stills.panels | _addresses(panels), rows, result.changed_fraction, _describe(result))


def _layout(result: Segmentation) -> tuple[tuple[int, int], np.ndarray]:
    """Return height and width of panels, and the color of each class."""
    return panel_size(*result.labels.shape), class_palette(len(result.palette), result.palette)


def _addresses(panels: dict[str, Image.Image]) -> dict[str, str]:
    return {part: data_url(panel) for part, panel in panels.items()}


def _rows(result: Segmentation, anchors: np.ndarray) -> list[dict]:
    columns = zip(result.areas, result.coverage, result.palette, anchors, strict=True)
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


def _describe(result: Segmentation) -> str:
    covered = sum(known.covered for known in result.coverage)
    anchors = sum(known.anchors for known in result.coverage)
    return (
        f'The bank of {result.settings.bank_images} images covers {covered} of {len(result.classes)} classes with '
        f'{anchors:,} anchors.'
    )


def difference_colors() -> dict[str, str]:
    """Return the legend of the difference: name -> CSS color."""
    kinds = Difference.UNCHANGED, Difference.CHANGED
    return {kind.name.lower(): css_color(DIFFERENCE_COLORS[kind]) for kind in kinds}


def css_color(color: np.ndarray | list[int] | tuple[int, ...]) -> str:
    red, green, blue = (int(value) for value in color)
    return f'#{red:02x}{green:02x}{blue:02x}'


def thumbnail(image: ImageSource) -> Image.Image:
    """Return a small image to click on."""
    height, width = image.load()['img_shape'][:2]
    return image.resized((_THUMBNAIL, max(1, round(width * _THUMBNAIL / height))))


def data_url(image: Image.Image) -> str:
    """Return an image as a part of the page itself: no file is written for it."""
    buffer = io.BytesIO()
    image.save(buffer, format='PNG', compress_level=1)  # it does not go far, and a slider waits for it
    return f'data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}'
