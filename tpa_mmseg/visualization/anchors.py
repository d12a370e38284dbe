"""Anchors on their image: the pixels that the prototypes of the classes are made from."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageOps

from ..datasets.palette import WHITE, class_palette
from .layout import Legend, LegendEntry, Panel, compose, panel_size
from .panels import colorize, fit_image, resample


def anchor_figure(
    anchors: np.ndarray,
    classes: Sequence[str],
    image: Image.Image | None = None,
    palette: Sequence[Sequence[int]] | None = None,
    font: str | os.PathLike | None = None,
) -> Image.Image:
    """Draws the image beside its anchors, with the number of anchors of every class that has any.

    Args:
        anchors: (H, W) class of every anchor pixel, -1 elsewhere, from ``core.anchor_map``.
        classes: Name of each class.
        image: The input, of any size.
        palette: RGB of each class; generated if it does not fit the classes.
        font: As in :func:`~.fonts.load_fonts`.
    """
    colors = class_palette(len(classes), palette)
    size = panel_size(*anchors.shape)
    background = Image.new('RGB', size[::-1], WHITE) if image is None else _pale(fit_image(image, size))
    panels = [] if image is None else [Panel('Input', fit_image(image, size))]
    panels.append(Panel('Anchors', draw_anchors(background, anchors, colors)))
    counts = np.bincount(anchors[anchors >= 0].ravel(), minlength=len(classes))
    entries = [
        LegendEntry(tuple(int(v) for v in colors[label]), f'{classes[label]} ({counts[label]:,})')
        for label in counts.nonzero()[0]
    ]
    return compose(panels, [Legend('Anchors', entries)], font=font)


def draw_anchors(background: Image.Image, anchors: np.ndarray, colors: np.ndarray) -> Image.Image:
    """Draws every anchor on the background in the color of its class.

    Args:
        background: RGB image of any size; it is not changed.
        anchors: (H, W) classes, -1 for pixels that are not anchors.
        colors: (C, 3) uint8 color of each class.
    """
    labels = _keep_anchors(anchors, background.size[::-1])
    painted = background.copy()
    painted.paste(Image.fromarray(colorize(labels, colors)), mask=Image.fromarray(labels >= 0))
    return painted


def _keep_anchors(anchors: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Resizes an anchor map to ``size``. When it shrinks, a single anchor does not disappear."""
    if size[0] >= anchors.shape[0] and size[1] >= anchors.shape[1]:
        return resample(anchors, size)
    labels = np.full(size, -1, dtype=np.int64)
    rows, columns = (anchors >= 0).nonzero()
    labels[rows * size[0] // anchors.shape[0], columns * size[1] // anchors.shape[1]] = anchors[rows, columns]
    return labels


def _pale(image: Image.Image) -> Image.Image:
    """Returns a light gray version on which colors stand out."""
    gray = ImageOps.grayscale(image).convert('RGB')
    return Image.blend(gray, Image.new('RGB', gray.size, WHITE), 0.45)
