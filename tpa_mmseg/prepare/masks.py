"""Masks as COCO-like annotation files store them, decoded without any package of COCO's.

Two forms: run lengths down the columns, plain or packed into a string, and polygons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

# COCO rasterizes on a grid that is this much finer.
_FINER = 5


def decode(segmentation: Mapping | Sequence, height: int, width: int) -> np.ndarray:
    """The mask of one annotation.

    Args:
        segmentation: ``{'size': [height, width], 'counts': ...}``, or a list of polygons ``[x0, y0, x1, y1, ...]``.
        height: Height of the image.
        width: Width of the image.

    Returns:
        A boolean array (height, width).

    Raises:
        ValueError: The annotation does not describe a mask of this size.
    """
    if not isinstance(segmentation, Mapping):
        mask = np.zeros((height, width), dtype=bool)
        for polygon in segmentation:
            mask |= rasterize(polygon, height, width)
        return mask
    if list(segmentation['size']) != [height, width]:
        raise ValueError(f'has a mask of {tuple(segmentation["size"])} for an image of {(height, width)}')
    counts = segmentation['counts']
    runs = unpack(counts) if isinstance(counts, (str, bytes)) else np.asarray(counts, dtype=np.int64)
    if runs.sum() != height * width or (runs < 0).any():
        raise ValueError(f'has run lengths for {runs.sum()} pixels instead of {height} x {width}')
    # Runs of zeros and ones take turns, zeros first, down one column after the other.
    values = np.arange(len(runs)) % 2 == 1
    return np.repeat(values, runs).reshape(width, height).T


def unpack(counts: str | bytes) -> np.ndarray:
    """The run lengths in COCO's packed string, (runs,).

    Every character carries five bits of a number, lowest first, and a sixth that says whether more follow; the topmost
    bit of the last one is the sign. From the fourth on, a number is the difference to the one two places before.
    """
    codes = np.frombuffer(counts.encode('ascii') if isinstance(counts, str) else counts, dtype=np.uint8)
    codes = codes.astype(np.int64) - 48
    if not len(codes) or (codes < 0).any() or (codes > 63).any() or codes[-1] & 32:
        raise ValueError('has run lengths that are no packed string of COCO')
    last = np.flatnonzero((codes & 32) == 0)
    first = np.concatenate([[0], last[:-1] + 1])
    places = np.arange(len(codes)) - np.repeat(first, last - first + 1)
    numbers = np.add.reduceat((codes & 31) << (5 * places), first)
    negative = (codes[last] & 16) != 0
    numbers[negative] -= 1 << (5 * (places[last][negative] + 1))
    for start in (1, 2):
        numbers[start::2] = np.cumsum(numbers[start::2])
    return numbers


def rasterize(polygon: Sequence[float], height: int, width: int) -> np.ndarray:
    """The pixels inside a polygon by COCO's rule, (height, width) of bool.

    COCO's labels are made by a rule of its own, which differs from that of drawing libraries by a pixel along the
    outline: the outline is walked on a grid five times as fine. Wherever it steps over the center of a pixel column,
    everything below flips between inside and outside.
    """
    corners = np.asarray(polygon, dtype=np.float64).reshape(-1, 2)
    x, y = _walk(np.trunc(corners * _FINER + 0.5).astype(np.int64))
    steps = np.flatnonzero(np.diff(x))
    # The center of a column that a step passes; most steps pass none.
    column = (np.minimum(x[steps], x[steps + 1]) + 0.5) / _FINER - 0.5
    row = np.ceil(np.clip((np.minimum(y[steps], y[steps + 1]) + 0.5) / _FINER - 0.5, 0, height))
    passes = (column == np.floor(column)) & (column >= 0) & (column <= width - 1)
    # A flip in row `height` of a column is one at the top of the next column, so the count runs through all of them.
    flips = (column[passes] * height + row[passes]).astype(np.int64)
    inside = np.cumsum(np.bincount(flips, minlength=height * width + 1)[:-1]) % 2 == 1
    return inside.reshape(width, height).T


def _walk(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The grid points along a closed outline, each side with both of its ends: x and y, (points,) each."""
    ends = np.roll(corners, -1, axis=0)
    spans = np.abs(ends - corners)
    lengths = spans.max(axis=1)
    steep = spans[:, 1] > spans[:, 0]
    # A side is always rounded in the same direction along its longer axis, whichever way it is walked.
    along, across = np.where(steep, 1, 0), np.where(steep, 0, 1)
    sides = np.arange(len(corners))
    backwards = corners[sides, along] > ends[sides, along]
    low, high = np.where(backwards[:, None], ends, corners), np.where(backwards[:, None], corners, ends)
    with np.errstate(invalid='ignore'):
        slopes = (high[sides, across] - low[sides, across]) / lengths

    side = np.repeat(sides, lengths + 1)
    step = np.arange(len(side)) - np.repeat(np.cumsum(lengths + 1) - lengths - 1, lengths + 1)
    step = np.where(backwards[side], lengths[side] - step, step)
    straight = low[side, along[side]] + step
    # A side without length has no slope, and its one step is zero.
    sloped = np.trunc(low[side, across[side]] + np.nan_to_num(slopes[side]) * step + 0.5).astype(np.int64)
    return np.where(steep[side], sloped, straight), np.where(steep[side], straight, sloped)
