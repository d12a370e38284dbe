"""The comparison figure: input, ground truth, host, TPA, and what TPA changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from PIL import Image

from ..datasets.palette import DIFFERENCE_COLORS, WHITE, class_palette
from .layout import Legend, LegendEntry, Panel, compose, hatched, panel_size


class Difference(IntEnum):
    """Effect of TPA on a pixel: an index into ``DIFFERENCE_COLORS``."""

    BOTH_RIGHT = 0
    BOTH_WRONG = 1
    CORRECTED = 2
    BROKEN = 3
    UNCHANGED = 4  #: only without ground truth
    CHANGED = 5  #: only without ground truth
    IGNORED = 255


def colorize(labels: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """Returns an (H, W, 3) uint8 image of a label map; labels that are not a class are white.

    Args:
        labels: (H, W) integers.
        colors: (C, 3) uint8 color of each class.
    """
    table = np.vstack([colors, np.array([WHITE], dtype=np.uint8)])
    return table[_with_unknown(labels, len(colors))]


def difference_map(
    host: np.ndarray, tpa: np.ndarray, ground_truth: np.ndarray | None = None, ignore_index: int = 255
) -> np.ndarray:
    """Returns the (H, W) uint8 :class:`Difference` of every pixel.

    Args:
        host, tpa: (H, W) labels.
        ground_truth: (H, W) true labels, or None if they are unknown.
        ignore_index: Label of ground-truth pixels that are not scored.
    """
    if ground_truth is None:
        return np.where(host == tpa, Difference.UNCHANGED, Difference.CHANGED).astype(np.uint8)
    was_right, is_right = host == ground_truth, tpa == ground_truth
    out = np.full(ground_truth.shape, Difference.BOTH_WRONG, dtype=np.uint8)
    out[was_right & is_right] = Difference.BOTH_RIGHT
    out[~was_right & is_right] = Difference.CORRECTED
    out[was_right & ~is_right] = Difference.BROKEN
    out[ground_truth == ignore_index] = Difference.IGNORED
    return out


def comparison(
    prediction: np.ndarray,
    classes: Sequence[str],
    host: np.ndarray | None = None,
    ground_truth: np.ndarray | None = None,
    image: Image.Image | None = None,
    palette: Sequence[Sequence[int]] | None = None,
    ignore_index: int = 255,
    font: str | os.PathLike | None = None,
) -> Image.Image:
    """Draws everything that can be compared side by side, with a legend of the classes that occur.

    Args:
        prediction: (H, W) labels of TPA, or of the host if ``host`` is None.
        classes: Name of each class.
        host: (H, W) labels of the host.
        ground_truth: (H, W) true labels.
        image: The input, of any size.
        palette: RGB of each class; generated if it does not fit the classes.
        ignore_index: Label of ground-truth pixels that are not scored.
        font: As in :func:`~.fonts.load_fonts`.
    """
    colors = class_palette(len(classes), palette)
    size = panel_size(*prediction.shape)
    maps = {'Ground truth': ground_truth, 'Host': host, 'Prediction' if host is None else 'Host + TPA': prediction}
    maps = {title: labels for title, labels in maps.items() if labels is not None}
    panels = [] if image is None else [Panel('Input', fit_image(image, size))]
    panels += [Panel(title, label_panel(labels, colors, size)) for title, labels in maps.items()]
    legends = [Legend('Classes', class_legend(list(maps.values()), classes, colors))]
    if host is not None:
        codes = difference_map(host, prediction, ground_truth, ignore_index)
        panels.append(Panel('Difference', label_panel(codes, DIFFERENCE_COLORS, size)))
        legends.append(Legend('Difference', difference_legend(codes)))
    return compose(panels, legends, font=font)


def label_panel(labels: np.ndarray, colors: np.ndarray, size: tuple[int, int]) -> Image.Image:
    """Draws a label map at ``size`` (height, width); labels that are not a class are hatched."""
    labels = resample(labels, size)
    panel = Image.fromarray(colorize(labels, colors))
    unknown = _with_unknown(labels, len(colors)) == len(colors)
    if unknown.any():
        panel.paste(hatched(panel.size), mask=Image.fromarray(unknown))
    return panel


def resample(labels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Returns the nearest label of each target pixel. Args: size: Height and width."""
    rows, columns = (_nearest(*axis) for axis in zip(labels.shape, size, strict=True))
    return labels[rows[:, None], columns]


def _nearest(source: int, target: int) -> np.ndarray:
    """Returns (target,) positions on an axis of ``source`` pixels, one for the center of each target pixel."""
    return ((np.arange(target) + 0.5) * source / target).astype(int)


def fit_image(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Resizes an input to a panel: smoothly if it shrinks, in plain squares if it grows."""
    height, width = size
    grows = width > image.width or height > image.height
    return image.resize((width, height), Image.Resampling.NEAREST if grows else Image.Resampling.LANCZOS)


def class_legend(maps: Sequence[np.ndarray], classes: Sequence[str], colors: np.ndarray) -> list[LegendEntry]:
    """Returns the classes that occur in any of the maps, in their order, and an entry for ignored pixels."""
    unknown = len(classes)
    counts = sum(np.bincount(_with_unknown(labels, unknown).ravel(), minlength=unknown + 1) for labels in maps)
    present = counts[:unknown].nonzero()[0]
    entries = [LegendEntry(tuple(int(v) for v in colors[label]), str(classes[label])) for label in present]
    return entries + [LegendEntry(None, 'ignored')] * bool(counts[unknown])


def difference_legend(codes: np.ndarray) -> list[LegendEntry]:
    """Returns the share of each kind of difference among the pixels that are not ignored."""
    count = np.bincount(codes.ravel(), minlength=256)
    known = count[: len(DIFFERENCE_COLORS)]
    kinds = Difference.UNCHANGED, Difference.CHANGED
    if not known[list(kinds)].any():
        kinds = Difference.CORRECTED, Difference.BROKEN, Difference.BOTH_RIGHT, Difference.BOTH_WRONG
    entries = []
    for kind in kinds:
        name = kind.name.lower().replace('_', ' ')
        share = 100 * known[kind] / max(1, known.sum())
        entries.append(LegendEntry(tuple(int(v) for v in DIFFERENCE_COLORS[kind]), f'{name} {share:.1f} %'))
    return entries


def _with_unknown(labels: np.ndarray, num_classes: int) -> np.ndarray:
    """Replaces labels that are not a class by ``num_classes``."""
    # As an array, so that labels of a small integer type are widened if they cannot hold it.
    unknown = np.array(num_classes, np.min_scalar_type(num_classes))
    return np.where((labels >= 0) & (labels < num_classes), labels, unknown)
