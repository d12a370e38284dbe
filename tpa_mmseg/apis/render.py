"""Figures of a segmentation: overlays, label images, comparisons, anchors. Only label images exceed a screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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
from .images import ImageSource

# Longest side of an overlay, and of the maps that other figures are made from.
_OVERLAY, _MAP = 1600, 2048
_OPACITY = 0.55
# Longest title, in characters.
_TITLE = 32
# Most classes in the legend of a video.
_LEGEND = 40
# Rows that are counted at once: counting needs eight bytes per pixel.
_ROWS = 256


class LabeledImage(Protocol):
    """The data behind a figure, which every ``Segmentation`` has."""

    @property
    def image(self) -> ImageSource: ...

    @property
    def classes(self) -> Sequence[str]: ...

    @property
    def palette(self) -> Sequence[Sequence[int]]: ...

    @property
    def labels(self) -> np.ndarray: ...

    @property
    def host_labels(self) -> np.ndarray: ...

    @property
    def adapted(self) -> bool: ...


def overlay(image: ImageSource, labels: np.ndarray, palette: Sequence[Sequence[int]]) -> Image.Image:
    """Paint classes over their image. Args: labels: (H, W); palette: RGB of each class."""
    size = _overlay_size(*labels.shape)
    colors = class_palette(len(palette), palette)
    return Image.blend(image.resized(size), label_panel(labels, colors, size), _OPACITY)


def legend_overlay(result: LabeledImage) -> Image.Image:
    """Draw the overlay above a legend with the share of every class that occurs."""
    counts = class_counts(result.labels, len(result.classes))
    entries = [
        LegendEntry(_rgb(color), f'{name} {100 * count / result.labels.size:.1f} %')
        for name, color, count in zip(result.classes, result.palette, counts, strict=True)
        if count
    ]
    return compose([_overlay_panel(result)], [Legend('Classes', entries)])


def compare(result: LabeledImage) -> Image.Image:
    """Draw image, host, TPA and difference side by side; without TPA, image and labels."""
    labels, host = _shrink(result.labels), _shrink(result.host_labels)
    image = result.image.resized(panel_size(*labels.shape))
    return comparison(labels, result.classes, host if result.adapted else None, image=image, palette=result.palette)


def video_overlay(result: LabeledImage) -> Image.Image:
    """Draw the overlay above a legend of all classes, so that every frame of a video has the same size."""
    return compose([_overlay_panel(result)], [_all_classes(result)])


def video_comparison(result: LabeledImage) -> Image.Image:
    """Draw the panels of :func:`compare` with legends that are the same for every frame of a video."""
    labels, host = _shrink(result.labels), _shrink(result.host_labels)
    size = panel_size(*labels.shape)
    colors = class_palette(len(result.palette), result.palette)
    panels = [Panel('Input', result.image.resized(size))]
    legends = [_all_classes(result)]
    if not result.adapted:
        return compose([*panels, Panel('Prediction', label_panel(labels, colors, size))], legends)
    panels += [Panel('Host', label_panel(host, colors, size)), Panel('Host + TPA', label_panel(labels, colors, size))]
    panels.append(Panel('Difference', label_panel(difference_map(host, labels), DIFFERENCE_COLORS, size)))
    changes = [
        LegendEntry(_rgb(DIFFERENCE_COLORS[kind]), kind.name.lower())
        for kind in (Difference.UNCHANGED, Difference.CHANGED)
    ]
    return compose(panels, [*legends, Legend('Difference', changes)])


def show_anchors(
    image: ImageSource, anchors: np.ndarray, classes: Sequence[str], palette: Sequence[Sequence[int]]
) -> Image.Image:
    """Draw an image beside its anchors. Args: anchors: (H, W) class of every anchor, -1 elsewhere."""
    anchors = _shrink(anchors)
    return anchor_figure(anchors, classes, image.resized(panel_size(*anchors.shape)), palette)


def label_image(labels: np.ndarray, palette: Sequence[Sequence[int]]) -> Image.Image:
    """Return labels as an image with a palette; as 16-bit gray if there are more than 256 classes."""
    if labels.dtype != np.uint8:
        return Image.fromarray(labels.astype(np.uint16))
    image = Image.fromarray(labels).convert('P')
    image.putpalette([value for color in palette for value in color])
    return image


def class_counts(labels: np.ndarray, num_classes: int) -> np.ndarray:
    """Return the (C,) number of pixels of every class; labels below zero do not count. Args: labels: (H, W)."""
    counts = np.zeros(num_classes, np.int64)
    for top in range(0, len(labels), _ROWS):
        band = labels[top : top + _ROWS]
        counts += np.bincount(band[band >= 0].ravel(), minlength=num_classes)
    return counts


def _overlay_panel(result: LabeledImage) -> Panel:
    name = result.image.name
    title = name if len(name) <= _TITLE else f'{name[: _TITLE - 1]}…'
    return Panel(title, overlay(result.image, result.labels, result.palette))


def _all_classes(result: LabeledImage) -> Legend:
    entries = [LegendEntry(_rgb(color), name) for name, color in zip(result.classes, result.palette, strict=True)]
    more = [] if len(entries) <= _LEGEND else [LegendEntry(None, f'and {len(entries) - _LEGEND} more')]
    return Legend('Classes', entries[:_LEGEND] + more)


def _rgb(color: Sequence[int] | np.ndarray) -> tuple[int, int, int]:
    red, green, blue = (int(value) for value in color)
    return red, green, blue


def _overlay_size(height: int, width: int) -> tuple[int, int]:
    """Small images are enlarged like panels, large ones shrink to a screen, the others keep their size."""
    longest = max(height, width)
    if longest > _OVERLAY:
        return max(1, round(height * _OVERLAY / longest)), max(1, round(width * _OVERLAY / longest))
    enlarged = panel_size(height, width)
    return enlarged if max(enlarged) > longest else (height, width)


def _shrink(labels: np.ndarray) -> np.ndarray:
    """Resample the labels of a huge image to a size that fits a screen."""
    longest = max(labels.shape)
    if longest <= _MAP:
        return labels
    return resample(labels, tuple(max(1, round(side * _MAP / longest)) for side in labels.shape))
