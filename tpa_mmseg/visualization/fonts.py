"""Fonts of the figures: DejaVu Sans, which comes with matplotlib, or one that the user chooses."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib.ft2font import FT2Font
from PIL import ImageFont

from ..errors import TPAError


class Fonts(NamedTuple):
    """A regular and a bold font of one size."""

    regular: ImageFont.FreeTypeFont
    bold: ImageFont.FreeTypeFont

    @property
    def size(self) -> int:
        """Height of a line in pixels."""
        return round(self.regular.size)


def load_fonts(size: int, font: str | os.PathLike | None = None, text: str = '') -> Fonts:
    """Loads the fonts, and warns if a character of the text is missing.

    Args:
        size: Height in pixels.
        font: Path of a TrueType or OpenType file, or its name if it is installed. Default: the environment variable
            ``TPA_FONT``, otherwise DejaVu Sans, which has Latin, Greek, Cyrillic and Arabic but no East Asian scripts.
        text: All that will be written.
    """
    chosen = font or os.environ.get('TPA_FONT')
    shipped = Path(matplotlib.get_data_path(), 'fonts', 'ttf')
    files = [chosen, chosen] if chosen else [shipped / 'DejaVuSans.ttf', shipped / 'DejaVuSans-Bold.ttf']
    try:
        fonts = Fonts(*(ImageFont.truetype(file, size) for file in files))
    except OSError as error:
        raise TPAError(f'Cannot load the font {chosen}. Set font or TPA_FONT to a .ttf, .otf or .ttc file.') from error
    known = FT2Font(str(fonts.regular.path)).get_charmap()
    missing = sorted({character for character in text if not character.isspace() and ord(character) not in known})
    if missing:
        name = fonts.regular.getname()[0]
        warnings.warn(
            f'{name} cannot draw {"".join(missing)!r}. Set font or TPA_FONT to a font that can, e.g. Noto Sans CJK for '
            'Chinese, Japanese and Korean (docs/own_images.md).',
            stacklevel=2,
        )
    return fonts
