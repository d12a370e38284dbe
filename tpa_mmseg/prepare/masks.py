"""Masks of annotation files, by pycocotools, which checks neither sizes nor numbers and writes beyond its buffers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import TPAError
from .labels import write

# Images of annotation files have fewer pixels.
_PIXELS = 200_000_000
# Every character of an RLE string holds six bits: five of a number, and whether more of it follow.
_RLE_CHARACTERS = bytes(range(48, 48 + 64))


def draw_masks(size: tuple[int, int], annotations: Iterable[tuple[object, object, Any]], labels: Mapping) -> bytes:
    """Draws the label image of one image, later masks over earlier ones.

    Args:
        size: Height and width of the image.
        annotations: Id, category and mask of each.
        labels: Category -> label.

    Raises:
        ValueError: An annotation is not one; the message has its id.
    """
    if not all(_is_integer(side) and side > 0 for side in size) or size[0] * size[1] > _PIXELS:
        raise ValueError(f'has a size of {size[0]!r} x {size[1]!r}, which is not that of an image')
    drawn = np.zeros(size, dtype=np.uint8)
    for number, category, mask in annotations:
        if not _is_integer(category) or category not in labels:
            raise ValueError(f'contains the category {category!r} (annotation {number!r}), which is not of the dataset')
        try:
            drawn[decode_mask(mask, *size)] = labels[category]
        except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
            raise ValueError(f'has an unusable annotation {number!r}: it {error or "exceeds the memory"}') from error
    return write(drawn)


def decode_mask(segmentation: object, height: int, width: int) -> np.ndarray:
    """Decodes the mask of a COCO annotation.

    Args:
        segmentation: RLE ``{'size': [height, width], 'counts': ...}``, or polygons ``[x0, y0, x1, y1, ...]``.
        height: Height of the image.
        width: Width of the image.

    Returns:
        A boolean array (height, width).

    Raises:
        ValueError: The annotation is not a mask of this size.
    """
    coco = pycocotools_mask()
    if isinstance(segmentation, list):
        polygons = [polygon for polygon in segmentation if _is_polygon(polygon, height, width)]
        if not polygons:
            return np.zeros((height, width), dtype=bool)
        return coco.decode(coco.merge(coco.frPyObjects(polygons, height, width))).astype(bool)
    if not isinstance(segmentation, Mapping) or not {'size', 'counts'} <= set(segmentation):
        raise ValueError('has neither polygons nor an RLE with its size and counts')
    rle, counts = segmentation, segmentation['counts']
    if segmentation['size'] != [height, width]:
        raise ValueError(f'has a mask of {segmentation["size"]} for an image of {[height, width]}')
    if isinstance(counts, (str, bytes)):
        counts = counts.encode() if isinstance(counts, str) else counts
        # pycocotools reads beyond the end of a string that has other characters or an unfinished number.
        if not counts or counts.translate(None, _RLE_CHARACTERS) or counts[-1] - 48 & 32:
            raise ValueError('has an invalid RLE string')
    else:
        if not isinstance(counts, list) or not all(_is_integer(count) and count >= 0 for count in counts):
            raise ValueError('has an RLE of other values than numbers of pixels')
        if sum(counts) != height * width:
            raise ValueError(f'has an RLE of {sum(counts)} pixels instead of {height} x {width}')
        rle = coco.frPyObjects(segmentation, height, width)
    mask = coco.decode(rle)
    # pycocotools does not initialize pixels beyond the end of an RLE.
    if mask.max(initial=0) > 1 or mask.sum() != coco.area(rle):
        raise ValueError(f'has an RLE of fewer than {height} x {width} pixels')
    return mask.astype(bool)


def _is_polygon(corners: object, height: int, width: int) -> bool:
    """Returns whether a polygon has an area. Raises ValueError if it is not a polygon of an image of this size."""
    if not isinstance(corners, list) or not all(type(value) in (int, float) for value in corners):
        raise ValueError('has a polygon of other values than numbers')
    x, y = np.array(corners[0 : len(corners) // 2 * 2], dtype=np.float64).reshape(-1, 2).T
    # pycocotools allocates memory for every step along the outline. NaN is not within.
    within = (np.abs(x / width - 0.5) <= 1.5) & (np.abs(y / height - 0.5) <= 1.5)
    outline = np.maximum(np.abs(np.diff(x, append=x[:1])), np.abs(np.diff(y, append=y[:1]))).sum()
    if not within.all() or outline > 9 * (height + 1) * (width + 1):
        raise ValueError(f'has a polygon far outside of an image of {height} x {width}')
    return len(corners) >= 6


def _is_integer(value: object) -> bool:
    return type(value) is int


def pycocotools_mask() -> ModuleType:
    """Returns ``pycocotools.mask``, or raises TPAError if it is not installed."""
    try:
        from pycocotools import mask
    except ImportError as error:
        raise TPAError("Annotation files need pycocotools. Install it with: pip install 'tpa_mmseg[data]'") from error
    return mask
