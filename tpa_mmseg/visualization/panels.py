"""The comparison picture: input, truth, host, TPA, and what TPA changed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from PIL import Image

from ..datasets.palette import WHITE, class_palette
from .layout import Entry, Legend, Panel, compose, hatched, panel_size


class Difference(IntEnum):
    """What TPA did to a pixel."""

    BOTH_RIGHT = 0
    BOTH_WRONG = 1
    CORRECTED = 2
    BROKEN = 3
    UNCHANGED = 4  #: only where the truth is unknown
    CHANGED = 5  #: only where the truth is unknown
    IGNORED = 255


DIFFERENCE_COLORS = np.array(
    [(205, 205, 205), (105, 105, 115), (0, 165, 80), (220, 40, 40), (205, 205, 205), (40, 110, 215)], dtype=np.uint8
)


def colorize(labels: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """(H, W, 3) uint8 picture of a label map; white where the label is no class.

    Args:
        labels: (H, W) integers.
        colors: (C, 3) uint8 color of each class.
    """
    table = np.vstack([colors, np.array([WHITE], dtype=np.uint8)])
    return table[_with_unknown(labels, len(colors))]


def difference_map(
    host: np.ndarray, tpa: np.ndarray, truth: np.ndarray | None = None, ignore_index: int = 255
) -> np.ndarray:
    """(H, W) uint8 :class:`Difference` of every pixel.

    Args:
        host, tpa: (H, W) labels.
        truth: (H, W) true labels, or None where they are unknown.
        ignore_index: Label of the truth that says nothing.
    """
    if truth is None:
        return np.where(host == tpa, Difference.UNCHANGED, Difference.CHANGED).astype(np.uint8)
    was_right, is_right = host == truth, tpa == truth
    out = np.full(truth.shape, Difference.BOTH_WRONG, dtype=np.uint8)
    out[was_right & is_right] = Difference.BOTH_RIGHT
    out[~was_right & is_right] = Difference.CORRECTED
    out[was_right & ~is_right] = Difference.BROKEN
    out[truth == ignore_index] = Difference.IGNORED
    return out


def comparison(
    prediction: np.ndarray,
    classes: Sequence[str],
    host: np.ndarray | None = None,
    truth: np.ndarray | None = None,
    image: Image.Image | None = None,
    palette: Sequence[Sequence[int]] | None = None,
    ignore_index: int = 255,
) -> Image.Image:
    """One picture that shows what there is to compare, with a legend of the classes in it.

    Args:
        prediction: (H, W) labels of TPA, or of the host where there is no ``host``.
        classes: Name of each class.
        host: (H, W) labels of the host.
        truth: (H, W) true labels.
        image: The input, of any size.
        palette: RGB of each class; generated where it does not fit the classes.
        ignore_index: Label of the truth that says nothing.
    """
    colors = class_palette(len(classes), palette)
    size = panel_size(*prediction.shape)
    maps = {'Ground truth': truth, 'Host': host, 'Prediction' if host is None else 'Host + TPA': prediction}
    maps = {title: labels for title, labels in maps.items() if labels is not None}
    panels = [] if image is None else [Panel('Input', fit_image(image, size))]
    panels += [Panel(title, label_panel(labels, colors, size)) for title, labels in maps.items()]
    legends = [Legend('Classes', class_legend(list(maps.values()), classes, colors))]
    if host is not None:
        codes = difference_map(host, prediction, truth, ignore_index)
        panels.append(Panel('Difference', label_panel(codes, DIFFERENCE_COLORS, size)))
        legends.append(Legend('Difference', difference_legend(codes)))
    return compose(panels, legends)


def label_panel(labels: np.ndarray, colors: np.ndarray, size: tuple[int, int]) -> Image.Image:
    """A label map as a picture of ``size`` (height, width); what is no class is hatched."""
    labels = resample(labels, size)
    picture = Image.fromarray(colorize(labels, colors))
    unknown = _with_unknown(labels, len(colors)) == len(colors)
    if unknown.any():
        picture.paste(hatched(picture.size), mask=Image.fromarray(unknown))
    return picture


def resample(labels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The nearest label of each target pixel: labels cannot be averaged. Args: size, height and width."""
    rows, columns = (_nearest(*axis) for axis in zip(labels.shape, size, strict=True))
    return labels[rows[:, None], columns]


def _nearest(source: int, target: int) -> np.ndarray:
    """(target,) position along an axis of ``source`` pixels that each target pixel's center falls on."""
    return ((np.arange(target) + 0.5) * source / target).astype(int)


def fit_image(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Resizes an input to a panel: smoothly when it shrinks, in plain squares when it grows."""
    height, width = size
    grows = width > image.width or height > image.height
    return image.resize((width, height), Image.Resampling.NEAREST if grows else Image.Resampling.LANCZOS)


def class_legend(maps: Sequence[np.ndarray], classes: Sequence[str], colors: np.ndarray) -> list[Entry]:
    """The classes that occur in any of the maps, in the dataset's order, and what is ignored."""
    unknown = len(classes)
    counts = sum(np.bincount(_with_unknown(labels, unknown).ravel(), minlength=unknown + 1) for labels in maps)
    present = counts[:unknown].nonzero()[0]
    entries = [Entry(tuple(int(v) for v in colors[label]), str(classes[label])) for label in present]
    return entries + [Entry(None, 'ignored')] * bool(counts[unknown])


def difference_legend(codes: np.ndarray) -> list[Entry]:
    """What happened to which share of the pixels that are not ignored."""
    count = np.bincount(codes.ravel(), minlength=256)
    known = count[: len(DIFFERENCE_COLORS)]
    kinds = Difference.UNCHANGED, Difference.CHANGED
    if not known[list(kinds)].any():
        kinds = Difference.CORRECTED, Difference.BROKEN, Difference.BOTH_RIGHT, Difference.BOTH_WRONG
    entries = []
    for kind in kinds:
        name = kind.name.lower().replace('_', ' ')
        share = 100 * known[kind] / max(1, known.sum())
        entries.append(Entry(tuple(int(v) for v in DIFFERENCE_COLORS[kind]), f'{name} {share:.1f} %'))
    return entries


def _with_unknown(labels: np.ndarray, num_classes: int) -> np.ndarray:
    """The labels, with ``num_classes`` for all that are no class."""
    # As an array, so that small integer labels are widened where they cannot hold it.
    unknown = np.array(num_classes, np.min_scalar_type(num_classes))
    return np.where((labels >= 0) & (labels < num_classes), labels, unknown)
