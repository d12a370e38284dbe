"""Label images: reading, relabeling and writing them, and drawing the masks of annotation files."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from types import ModuleType

import numpy as np
from PIL import Image

from ..errors import TPAError
from ..images import UnreadableImage, open_image
from .layouts import IGNORED

# Every character of an RLE string holds six bits: five of a number, and whether more of it follow.
_RLE_CHARACTERS = bytes(range(48, 48 + 64))


class Relabeling:
    """Replaces the pixel values of label images.

    Args:
        numbers: Old value -> new value. A label with any other value is refused.
        name: Name of an old value in error messages, e.g. ``'an id of Cityscapes'``.
    """

    def __init__(self, numbers: Mapping[int, int], name: str) -> None:
        self._name = name
        self._known = np.zeros(256, dtype=bool)
        self._known[list(numbers)] = True
        self._table = np.zeros(256, dtype=np.uint8)
        self._table[list(numbers)] = list(numbers.values())

    def __call__(self, image: bytes) -> bytes:
        """Converts a label image. Raises ValueError for unexpected values."""
        pixels = read(image)
        strange = np.flatnonzero((np.bincount(pixels.ravel(), minlength=256) > 0) & ~self._known)
        if len(strange):
            raise ValueError(f'contains the value {strange[0]}, which is not {self._name}: pass the original labels')
        return write(self._table[pixels])


def read(image: bytes) -> np.ndarray:
    """Returns the pixels of a label image, (H, W) of uint8. Raises ValueError if it is not one."""
    try:
        with open_image(image, 'of labels') as opened:
            mode, pixels = opened.mode, np.asarray(opened)
    except UnreadableImage as error:
        raise ValueError(f'is not an image, or it is damaged ({error.__cause__})') from error
    if mode not in ('L', 'P'):
        raise ValueError(f'is an image of mode {mode}, but labels have one byte per pixel')
    return pixels


def write(pixels: np.ndarray) -> bytes:
    """Returns a PNG with one byte per pixel. Args: pixels: (H, W) of uint8."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, 'PNG')
    return buffer.getvalue()


def with_ignored(numbers: Mapping[int, int]) -> dict[int, int]:
    """Adds the pixels that are not scored, which stay as they are."""
    return {**numbers, IGNORED: IGNORED}


def decode_mask(segmentation: Mapping | Sequence, height: int, width: int) -> np.ndarray:
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
    if not isinstance(segmentation, Mapping):
        polygons = [polygon for polygon in segmentation if len(polygon) >= 6]
        if not polygons:
            return np.zeros((height, width), dtype=bool)
        return coco.decode(coco.merge(coco.frPyObjects(polygons, height, width))).astype(bool)
    if list(segmentation['size']) != [height, width]:
        raise ValueError(f'has a mask of {tuple(segmentation["size"])} for an image of {(height, width)}')
    rle, counts = segmentation, segmentation['counts']
    if isinstance(counts, (str, bytes)):
        counts = counts.encode() if isinstance(counts, str) else counts
        # pycocotools reads beyond the end of a string that has other characters or an unfinished number.
        if not counts or counts.translate(None, _RLE_CHARACTERS) or counts[-1] - 48 & 32:
            raise ValueError('has an invalid RLE string')
    else:
        if sum(counts) != height * width or min(counts) < 0:
            raise ValueError(f'has an RLE of {sum(counts)} pixels instead of {height} x {width}')
        rle = coco.frPyObjects(segmentation, height, width)
    mask = coco.decode(rle)
    # pycocotools does not initialize pixels beyond the end of an RLE.
    if mask.max(initial=0) > 1 or mask.sum() != coco.area(rle):
        raise ValueError(f'has an RLE of fewer than {height} x {width} pixels')
    return mask.astype(bool)


def pycocotools_mask() -> ModuleType:
    """Returns ``pycocotools.mask``, or raises TPAError if it is not installed."""
    try:
        from pycocotools import mask
    except ImportError as error:
        raise TPAError("Annotation files need pycocotools. Install it with: pip install 'tpa_mmseg[data]'") from error
    return mask
