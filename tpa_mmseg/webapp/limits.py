"""What a visitor may bring: how many pictures, of which size, under which names, and which words."""

from __future__ import annotations

import io
from dataclasses import dataclass

from PIL import Image

from ..apis.picture import Picture, pixels_of
from ..clip.names import split_classes
from ..errors import TPAError

#: What Pillow may read. It knows many formats more, and some of those start other programs.
FORMATS = ('JPEG', 'PNG', 'WEBP', 'BMP', 'TIFF')
# Longest name of a picture, in characters.
_NAME = 60


@dataclass(frozen=True)
class Limits:
    """The most that a visitor may bring.

    Args:
        images: Pictures at once.
        megabytes: Of a file.
        megapixels: Of a picture.
        kept_megapixels: Larger pictures are shrunk to this, so that labels follow the sliders.
        classes: Of a list.
        characters: Of all classes together.
    """

    images: int = 16
    megabytes: float = 16
    megapixels: float = 100
    kept_megapixels: float = 1
    classes: int = 300
    characters: int = 20_000

    @property
    def bytes(self) -> int:
        return round(self.megabytes * 2**20)


def read_upload(content: bytes, name: str, limits: Limits) -> Picture:
    """A picture from outside, which stays in memory.

    Args:
        content: Of the file.
        name: What the visitor calls it. It is shown and written into JSON, and never becomes a path.
        limits: What is allowed.
    """
    name = shown_name(name)
    if len(content) > limits.bytes:
        raise TPAError(f'{name} is larger than {limits.megabytes:g} MB: make it smaller.')
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            # The size is in the header: a small file may unfold to more than there is memory.
            if image.width * image.height > limits.megapixels * 1e6:
                raise TPAError(
                    f'{name} has {image.width} x {image.height} pixels, and the limit is {limits.megapixels:g} '
                    'megapixels: make it smaller.'
                )
            pixels = pixels_of(image, name)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise TPAError(
            f'{name} cannot be read: bring a complete {", ".join(FORMATS[:-1])} or {FORMATS[-1]}.'
        ) from error
    picture = Picture(name, pixels)
    height, width = pixels.shape[:2]
    factor = (limits.kept_megapixels * 1e6 / (height * width)) ** 0.5
    if factor >= 1:
        return picture
    return Picture(name, pixels_of(picture.at((max(1, round(height * factor)), max(1, round(width * factor)))), name))


def shown_name(name: str) -> str:
    """A name to show: its last part, what is printable of it, not too long."""
    last = name.replace('\\', '/').rpartition('/')[2]
    printable = ''.join(character for character in last if character.isprintable()).strip()
    return printable[:_NAME] or 'picture'


def read_words(text: str, background: bool, limits: Limits) -> list[str]:
    """One entry per class of what a visitor typed: commas or new lines between classes, ``;`` between synonyms.

    A list, because the API would take a single string for the name of a file too.

    Args:
        text: What was typed.
        background: Whether a background is added.
        limits: What is allowed.
    """
    entries = [entry.strip(' \t\r;') for entry in split_classes(text)]
    classes = [entry for entry in entries if entry]
    if not classes:
        raise TPAError('There are no classes: type some, one per line.')
    if len(text) > limits.characters or len(classes) > limits.classes:
        raise TPAError(f'These are too many classes: at most {limits.classes} and {limits.characters} characters.')
    if len(classes) == 1 and not background:
        raise TPAError(
            f'With {classes[0][:_NAME]!r} as the only class every pixel belongs to it: add a background, or further '
            'classes on lines of their own.'
        )
    return classes
