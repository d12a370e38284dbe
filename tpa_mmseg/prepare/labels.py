"""Label images: reading, relabeling and writing them."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
from PIL import Image

from ..images import UnreadableImage, open_image
from .layouts import IGNORED


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
