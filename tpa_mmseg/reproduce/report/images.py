"""Pictures inside a page: smaller, and as text."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from ...visualization import read_image

# Panels side by side are wide; more pixels than this a screen rarely has.
_LONGEST = 1600
_QUALITY = 80


class Embedded(NamedTuple):
    """A picture as text. Args: uri; width and height in pixels."""

    uri: str
    width: int
    height: int


def embed(file: Path) -> Embedded | None:
    """The picture of a file; None where there is none that can be read."""
    image = read_image(file)
    if image is None:
        return None
    image.thumbnail((_LONGEST, _LONGEST), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    image.save(out, format='WEBP', quality=_QUALITY, method=4)
    return Embedded(f'data:image/webp;base64,{base64.b64encode(out.getvalue()).decode("ascii")}', *image.size)
