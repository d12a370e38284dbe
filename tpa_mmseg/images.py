"""Pictures from strangers: every picture of the package is opened here."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from .errors import TPAError

#: The formats that are read. Pillow has many more, and some of those start other programs.
FORMATS = ('JPEG', 'PNG', 'WEBP', 'BMP', 'TIFF', 'GIF', 'PPM')
_MEGAPIXELS = 200.0


class UnreadableImage(TPAError):
    """An image that cannot be read. Others may be readable."""


@contextmanager
def open_image(source: bytes | Path, name: object, megapixels: float | None = None) -> Iterator[Image.Image]:
    """Opens a picture. Decode its pixels inside the ``with`` block: whatever a broken file raises is UnreadableImage.

    Args:
        source: Content of the file, or its path.
        name: Its name in error messages.
        megapixels: Largest size, compared with the header: a small file may unfold to more than there is memory.
            Default: ``$TPA_MEGAPIXELS``, or 200.
    """
    try:
        with io.BytesIO(source) if isinstance(source, bytes) else source.open('rb') as file:
            yield _identified(file, _limit() if megapixels is None else megapixels)
    except TPAError:
        raise
    except Exception as error:  # every decoder has its own exceptions, and a damaged file can raise almost any
        reason = 'not enough memory' if isinstance(error, MemoryError) else getattr(error, 'strerror', None) or error
        raise UnreadableImage(
            f'Cannot decode image {name} ({reason}). Replace the file or remove it from the dataset.'
        ) from error


def shrink(image: Image.Image, megapixels: float) -> None:
    """Shrinks an opened image in place to a size, before anything else is done with its pixels.

    JPEGs are shrunk while they are decoded.
    """
    factor = (megapixels * 1e6 / (image.width * image.height)) ** 0.5
    if factor < 1:
        size = max(1, round(image.width * factor)), max(1, round(image.height * factor))
        # Pillow does not interpolate 16-bit images.
        image.thumbnail(size, Image.Resampling.NEAREST if ';' in image.mode else Image.Resampling.BICUBIC)


def _identified(file: io.BufferedIOBase, megapixels: float) -> Image.Image:
    """Reads the header. ``Image.open`` has a lower limit, which only a setting of the whole process changes."""
    Image.init()
    head = file.read(16)
    for form in FORMATS:
        opened, accepts = Image.OPEN[form]
        if accepts(head):
            file.seek(0)
            image = opened(file, '')
            if image.width * image.height > megapixels * 1e6:
                raise ValueError(f'{image.width} x {image.height} pixels, the limit is {megapixels:g} megapixels')
            return image
    raise ValueError(f'not one of the formats {", ".join(FORMATS)}')


def _limit() -> float:
    given = os.environ.get('TPA_MEGAPIXELS') or _MEGAPIXELS
    try:
        return float(given)
    except ValueError as error:
        raise TPAError(f'TPA_MEGAPIXELS must be a number, got {given!r}.') from error
