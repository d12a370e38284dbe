"""The original image behind a network's input, for hosts whose second model wants it untouched."""

from __future__ import annotations

import warnings

import cv2
import mmengine.fileio
import numpy as np
from mmseg.structures import SegDataSample


def read_original(sample: SegDataSample | None, size: tuple[int, int]) -> np.ndarray | None:
    """Reads the file that a sample names.

    Args:
        sample: The sample.
        size: Height and width that the image must have.

    Returns:
        (H, W, 3) uint8 RGB; None, with a warning, where there is no such file, and where no file is named.
    """
    path = None if sample is None else sample.metainfo.get('img_path')
    if not path:
        return None
    try:
        content = np.frombuffer(mmengine.fileio.get(path), np.uint8)
    except OSError:
        content = np.empty(0, np.uint8)
    image = cv2.imdecode(content, cv2.IMREAD_COLOR) if content.size else None
    if image is None or image.shape[:2] != tuple(size):
        warnings.warn(
            'SAM should see the original image, but img_path names no image file of the size ori_shape: '
            'it sees the input of the network instead.',
            stacklevel=2,
        )
        return None
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def resize_pixels(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Bilinear resize of an (H, W, 3) uint8 image to a height and width, as OpenCV does it."""
    if image.shape[:2] == tuple(size):
        return image
    return cv2.resize(image, tuple(size[::-1]), interpolation=cv2.INTER_LINEAR)
