"""The original image behind a network's input, for hosts whose second model needs it unchanged."""

from __future__ import annotations

import warnings

import cv2
import mmengine.fileio
import numpy as np
from mmseg.structures import SegDataSample

from ...images import UnreadableImage, open_image


def read_original(sample: SegDataSample | None, size: tuple[int, int]) -> np.ndarray | None:
    """Reads the image file of a sample.

    Args:
        sample: The sample.
        size: Expected height and width.

    Returns:
        (H, W, 3) uint8 RGB; None if the sample has no file or, with a warning, if the file is missing or unsuitable.
    """
    path = None if sample is None else sample.metainfo.get('img_path')
    if not path:
        return None
    try:
        content = mmengine.fileio.get(path)
        with open_image(content, path):
            image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    except (OSError, UnreadableImage):
        image = None
    if image is None or image.shape[:2] != tuple(size):
        warnings.warn(
            'SAM should run on the original image, but img_path is not an image file of the size ori_shape: '
            "the network's input is used instead.",
            stacklevel=2,
        )
        return None
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def resize_pixels(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Resizes an (H, W, 3) uint8 image bilinearly to a height and width, by OpenCV."""
    if image.shape[:2] == tuple(size):
        return image
    return cv2.resize(image, tuple(size[::-1]), interpolation=cv2.INTER_LINEAR)
