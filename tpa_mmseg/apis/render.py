"""Pictures of a result: overlays, label maps, comparisons, anchors. Never larger than a screen, labels excepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from ..visualization import (
    DIFFERENCE_COLORS,
    Difference,
    Legend,
    LegendEntry,
    Panel,
    anchor_figure,
    class_palette,
    comparison,
    compose,
    difference_map,
    panel_size,
)
from ..visualization.panels import label_panel, resample
from .picture import Picture

if TYPE_CHECKING:
    from .result import Result

# Longest side of an overlay, and of the maps that other pictures are made from.
_OVERLAY, _MAP = 1600, 2048
_OPACITY = 0.55
# Longest title, in characters.
_TITLE = 32
# Most classes in the legend of a video.
_LEGEND = 40
# Rows that are counted at once: counting needs eight bytes per pixel.
_ROWS = 256


def overlay(picture: Picture, labels: np.ndarray, palette: Sequence[Sequence[int]]) -> Image.Image:
    """Classes painted over their picture. Args: labels: (H, W); palette: RGB of each class."""
    size = _overlay_size(*labels.shape)
    colors = class_palette(len(palette), palette)
    return Image.blend(picture.at(size), label_panel(labels, colors, size), _OPACITY)


def legend_overlay(result: Result) -> Image.Image:
    """The overlay of a result above a legend with the share of every class in it."""
    entries = [
        LegendEntry(tuple(color), f'{area.name} {100 * area.share:.1f} %')
        for area, color in zip(result.areas(), result.palette, strict=True)
        if area.pixels
    ]
    return compose([Panel(_title(result), result.overlay())], [Legend('Classes', entries)])


def compare(result: Result) -> Image.Image:
    """Picture, host, TPA and difference side by side; without TPA picture and labels."""
    labels, host = (_shrink(each) for each in (result.labels, result.host_labels))
    image = result.picture.at(panel_size(*labels.shape))
    host = None if result.bank is None else host
    return comparison(labels, result.class_names, host, image=image, palette=result.palette)


def film_overlay(result: Result) -> Image.Image:
    """The overlay above a legend of all classes, so that every frame of a video has the same size."""
    return compose([Panel(_title(result), result.overlay())], [_all_classes(result)])


def film_comparison(result: Result) -> Image.Image:
    """What :func:`compare` shows, with legends that are the same for every frame of a video."""
    labels, host = (_shrink(each) for each in (result.labels, result.host_labels))
    size = panel_size(*labels.shape)
    colors = class_palette(len(result.palette), result.palette)
    panels = [Panel('Input', result.picture.at(size))]
    legends = [_all_classes(result)]
    if result.bank is None:
        return compose([*panels, Panel('Prediction', label_panel(labels, colors, size))], legends)
    panels += [Panel('Host', label_panel(host, colors, size)), Panel('Host + TPA', label_panel(labels, colors, size))]
    panels.append(Panel('Difference', label_panel(difference_map(host, labels), DIFFERENCE_COLORS, size)))
    changes = [
        LegendEntry(tuple(int(value) for value in DIFFERENCE_COLORS[kind]), kind.name.lower())
        for kind in (Difference.UNCHANGED, Difference.CHANGED)
    ]
    return compose(panels, [*legends, Legend('Difference', changes)])


def _title(result: Result) -> str:
    """The name of the picture, not longer than a picture is wide."""
    return result.name if len(result.name) <= _TITLE else f'{result.name[: _TITLE - 1]}…'


def _all_classes(result: Result) -> Legend:
    entries = [LegendEntry(tuple(color), name) for name, color in zip(result.class_names, result.palette, strict=True)]
    more = [] if len(entries) <= _LEGEND else [LegendEntry(None, f'and {len(entries) - _LEGEND} more')]
    return Legend('Classes', entries[:_LEGEND] + more)


def show_anchors(result: Result) -> Image.Image:
    """The picture beside its anchors."""
    anchors = _shrink(result.anchors())
    image = result.picture.at(panel_size(*anchors.shape))
    return anchor_figure(anchors, result.class_names, image, result.palette)


def label_image(labels: np.ndarray, palette: Sequence[Sequence[int]]) -> Image.Image:
    """Labels as a palette picture; as 16-bit gray where there are more than 256 classes."""
    if labels.dtype != np.uint8:
        return Image.fromarray(labels.astype(np.uint16))
    image = Image.fromarray(labels).convert('P')
    image.putpalette([value for color in palette for value in color])
    return image


def class_counts(labels: np.ndarray, num_classes: int) -> np.ndarray:
    """(C,) number of pixels of every class; labels below zero do not count. Args: labels: (H, W)."""
    bands = (labels[top : top + _ROWS] for top in range(0, len(labels), _ROWS))
    return sum(np.bincount(band[band >= 0].ravel(), minlength=num_classes) for band in bands)


def _overlay_size(height: int, width: int) -> tuple[int, int]:
    """Small pictures are enlarged like panels, large ones shrink to a screen, the others stay."""
    longest = max(height, width)
    if longest > _OVERLAY:
        return tuple(max(1, round(side * _OVERLAY / longest)) for side in (height, width))
    enlarged = panel_size(height, width)
    return enlarged if max(enlarged) > longest else (height, width)


def _shrink(labels: np.ndarray) -> np.ndarray:
    """Labels of a huge picture at a size that is enough to look at."""
    longest = max(labels.shape)
    if longest <= _MAP:
        return labels
    return resample(labels, tuple(max(1, round(side * _MAP / longest)) for side in labels.shape))
