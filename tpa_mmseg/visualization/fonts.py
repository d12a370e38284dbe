"""Fonts that can write a class name, whatever its language."""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path

from PIL import ImageFont

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

# Size at which a font is asked which characters it has.
_PROBE = 16
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
    found = next((font for font in fonts if _covers(font, text)), None)
    return found or _installed_font(text, size) or fonts[0]


@lru_cache(maxsize=4096)
def legible(text: str) -> str:
    """The text with a code such as U+732B for every character that no font here has: boxes all look alike."""
    if _covers(font_for(text, _PROBE), text):
        return text
    pieces = (c if _covers(font_for(c, _PROBE), c) else f' U+{ord(c):04X} ' for c in text)
    return ' '.join(''.join(pieces).split())


@lru_cache(maxsize=256)
def _installed_font(text: str, size: int) -> Font | None:
    """Any font of the system that has every character of the text."""
    for path in _installed_files():
        try:
            font = ImageFont.truetype(path, size)
        except OSError:
            continue
        if _covers(font, text):
            return font
    return None


@lru_cache(maxsize=1)
def _installed_files() -> list[str]:
    if importlib.util.find_spec('matplotlib') is None:
        return []
    from matplotlib.font_manager import findSystemFonts  # takes a moment, and is rarely needed

    return sorted(findSystemFonts())


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
