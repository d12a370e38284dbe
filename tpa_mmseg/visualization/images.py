"""Reading an image for display: color, gray, transparent, 16-bit, rotated by EXIF."""

from __future__ import annotations

import os

import mmengine.fileio
import numpy as np
from PIL import Image, ImageOps

from ..datasets.palette import WHITE
from ..images import UnreadableImage, open_image, shrink

# Figures are smaller than this.
_MEGAPIXELS = 16


def read_image(path: str | os.PathLike | None) -> Image.Image | None:
    """Returns the image at a path or address of MMEngine as RGB, or None if it cannot be read."""
    if path is None:
        return None
    try:
        with open_image(mmengine.fileio.get(path), path) as image:
            shrink(image, _MEGAPIXELS)
            return to_rgb(ImageOps.exif_transpose(image))
    except (OSError, KeyError, ValueError, UnreadableImage):  # KeyError: unknown prefix
        return None


def to_rgb(image: Image.Image) -> Image.Image:
    """Converts any Pillow image to RGB: transparent parts to white, more than 8 bits to the visible range."""
    if image.mode[0] in 'IF':
        return _stretch(np.asarray(image, dtype=np.float32))
    if image.mode in ('RGBA', 'LA', 'PA', 'La', 'RGBa') or 'transparency' in image.info:
        image = image.convert('RGBA')
        canvas = Image.new('RGBA', image.size, WHITE)
        return Image.alpha_composite(canvas, image).convert('RGB')
    return image.convert('RGB')


def _stretch(values: np.ndarray) -> Image.Image:
    """Shows gray values of unknown range, from black for the lowest to white for the highest."""
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    unit = np.nan_to_num((values - low) / max(high - low, 1e-12), nan=0, posinf=1, neginf=0)
    return Image.fromarray((unit.clip(0, 1) * 255).round().astype(np.uint8)).convert('RGB')
