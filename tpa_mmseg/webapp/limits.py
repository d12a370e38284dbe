"""Limits of uploads: number, size and names of images, and class names."""

from __future__ import annotations

from dataclasses import dataclass

from ..apis.images import ImageSource, pixels_of
from ..clip.names import split_classes
from ..errors import TPAError
from ..images import FORMATS, UnreadableImage, open_image, shrink

# Longest name of an image, in characters.
_NAME = 60


@dataclass(frozen=True)
class Limits:
    """Limits of what a visitor may upload and enter.

    Args:
        images: Number of images.
        megabytes: Size of a file.
        megapixels: Size of an image.
        kept_megapixels: Larger images are shrunk to this size, so that labels follow the sliders.
        classes: Number of classes.
        characters: Length of all class names together.
    """

    images: int = 16
    megabytes: float = 16
    megapixels: float = 40
    kept_megapixels: float = 1
    classes: int = 300
    characters: int = 20_000

    @property
    def bytes(self) -> int:
        return round(self.megabytes * 2**20)


def read_upload(content: bytes, name: str, limits: Limits) -> ImageSource:
    """Read an uploaded image, which stays in memory.

    Args:
        content: Content of the file.
        name: Name of the file. It is shown and written into JSON, and never becomes a path.
        limits: The limits.
    """
    name = shown_name(name)
    if len(content) > limits.bytes:
        raise TPAError(f'{name} is larger than {limits.megabytes:g} MB. Upload a smaller file.')
    try:
        with open_image(content, name, limits.megapixels) as image:
            shrink(image, limits.kept_megapixels)
            return ImageSource(name, pixels_of(image, name))
    except UnreadableImage as error:
        raise TPAError(
            f'{name} cannot be read ({error.__cause__}). Upload a complete {", ".join(FORMATS[:-1])} or {FORMATS[-1]} '
            'file within the limits.'
        ) from error


def shown_name(name: str) -> str:
    """Return the printable part of a file name, without folders and shortened."""
    last = name.replace('\\', '/').rpartition('/')[2]
    printable = ''.join(character for character in last if character.isprintable()).strip()
    return printable[:_NAME] or 'image'


def read_classes(text: str, background: bool, limits: Limits) -> list[str]:
    """Split the text of a form into classes: commas or new lines separate classes, ``;`` separates synonyms.

    Returns a list, because the API also accepts a single string as the name of a file.

    Args:
        text: The text.
        background: Whether a background is added.
        limits: The limits.
    """
    entries = [entry.strip(' \t\r;') for entry in split_classes(text)]
    classes = [entry for entry in entries if entry]
    if not classes:
        raise TPAError('No classes. Enter some, one per line.')
    if len(text) > limits.characters or len(classes) > limits.classes:
        raise TPAError(f'Too many classes. The limit is {limits.classes} classes and {limits.characters} characters.')
    if len(classes) == 1 and not background:
        raise TPAError(
            f'Only one class was given: {classes[0][:_NAME]!r}, so every pixel belongs to it. Add a background, or '
            'further classes on separate lines.'
        )
    return classes
