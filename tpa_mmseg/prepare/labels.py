"""Label pictures: reading them, giving their pixels other numbers, writing them."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
from PIL import Image, UnidentifiedImageError

from .layouts import IGNORED


class Relabeling:
    """What becomes of each pixel value.

    Args:
        numbers: Old value -> new value. A label that holds any other value is refused.
        name: What the old values are, for the sentence.
    """

    def __init__(self, numbers: Mapping[int, int], name: str) -> None:
        self._name = name
        self._known = np.zeros(256, dtype=bool)
        self._known[list(numbers)] = True
        self._table = np.zeros(256, dtype=np.uint8)
        self._table[list(numbers)] = list(numbers.values())

    def __call__(self, picture: bytes) -> bytes:
        """Makes one label picture from another. Raises ValueError where it holds what is not expected."""
        pixels = read(picture)
        strange = np.flatnonzero((np.bincount(pixels.ravel(), minlength=256) > 0) & ~self._known)
        if len(strange):
            raise ValueError(f'holds the value {strange[0]}, which is no {self._name}: it is another kind of label')
        return write(self._table[pixels])


def read(picture: bytes) -> np.ndarray:
    """The pixels of a label picture, (H, W) of uint8. Raises ValueError where it is none."""
    try:
        with Image.open(io.BytesIO(picture)) as image:
            if image.mode not in ('L', 'P'):
                raise ValueError(f'is a picture of mode {image.mode}, and a label has one byte per pixel')
            return np.asarray(image)
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise ValueError('is no picture, or a damaged one') from error


def write(pixels: np.ndarray) -> bytes:
    """A PNG of one byte per pixel. Args: pixels: (H, W) of uint8."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, 'PNG')
    return buffer.getvalue()


def with_ignored(numbers: Mapping[int, int]) -> dict[int, int]:
    """A relabeling that leaves the pixels that are not scored as they are."""
    return {**numbers, IGNORED: IGNORED}
