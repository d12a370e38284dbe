"""Fonts that can write a class name, whatever its language."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path

from PIL import ImageFont

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

# Looked up by Pillow in the system's font folders, for scripts that the first font lacks.
_SYSTEM_FONTS = (
    'NotoSansCJK-Regular.ttc',
    'NotoSans-Regular.ttf',
    'wqy-microhei.ttc',
    'wqy-zenhei.ttc',
    'Arial Unicode.ttf',
    'PingFang.ttc',
    'msyh.ttc',
    'arialuni.ttf',
)


@lru_cache(maxsize=4096)
def font_for(text: str, size: int, bold: bool = False) -> Font:
    """The first font that has every character of the text, or else the first one."""
    fonts = _fonts(size, bold)
    return next((font for font in fonts if _covers(font, text)), fonts[0])


@lru_cache(maxsize=64)
def _fonts(size: int, bold: bool) -> list[Font]:
    """DejaVu Sans first: it comes with matplotlib, which MMSegmentation needs, so pictures look the same everywhere."""
    name = 'DejaVuSans-Bold.ttf' if bold else 'DejaVuSans.ttf'
    spec = importlib.util.find_spec('matplotlib')
    shipped = [] if spec is None else [str(Path(spec.origin).parent / 'mpl-data' / 'fonts' / 'ttf' / name)]
    fonts = []
    for candidate in (*shipped, name, *_SYSTEM_FONTS):
        try:
            fonts.append(ImageFont.truetype(candidate, size))
        except OSError:
            continue
    return fonts or [ImageFont.load_default(size)]


def _covers(font: Font, text: str) -> bool:
    missing = _glyph(font, '\U0010ffff')
    return all(character.isspace() or _glyph(font, character) != missing for character in set(text))


def _glyph(font: Font, character: str) -> tuple | None:
    """What a character looks like; None where the font cannot even be asked."""
    try:
        mask = font.getmask(character)
    except (UnicodeError, OSError):
        return None
    return mask.size, bytes(mask)
