"""Limits of the page: visitors, uploads, names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..apis.images import ImageSource, pixels_of
from ..clip.names import ClassNames, split_classes
from ..errors import TPAError
from ..images import FORMATS, UnreadableImage, open_image, shrink

# Longest name of an image, in characters.
_NAME = 60


@dataclass(frozen=True)
class Limits:
    """Limits of what visitors may do.

    Args:
        images: Number of images.
        megabytes: Size of a file.
        megapixels: Size of an image.
        kept_megapixels: Larger images are shrunk to this size, so that labels follow the sliders.
        names: Number of class names, synonyms included.
        characters: Length of all class names together.
        visitors: Number of visitors at once.
        minutes: A visitor who does nothing for this long is forgotten.
        upload_seconds: Time that an upload may take.
    """

    images: int = 16
    megabytes: float = 16
    megapixels: float = 40
    kept_megapixels: float = 1
    names: int = 300
    characters: int = 20_000
    visitors: int = 8
    minutes: float = 30
    upload_seconds: float = 120


def read_upload(path: str, limits: Limits) -> ImageSource:
    """Read an uploaded image, which stays in memory. Its name is shown and written into JSON, and becomes no path."""
    name = shown_name(path)
    if Path(path).stat().st_size > limits.megabytes * 2**20:
        raise TPAError(f'{name} is larger than {limits.megabytes:g} MB. Upload a smaller file.')
    try:
        with open_image(Path(path), name, limits.megapixels) as image:
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
    return ''.join(character for character in last if character.isprintable()).strip()[:_NAME] or 'image'


def read_classes(text: str, limits: Limits) -> ClassNames:
    """Read the classes of a form. What looks like the name of a file is a class name here.

    Args:
        text: The text, in the grammar of :mod:`tpa_mmseg.clip.names`.
        limits: The limits.
    """
    names = ClassNames.read([entry for entry in split_classes(text) if entry.strip(' \t\r;')])
    if len(text) > limits.characters or len(names.queries) > limits.names:
        raise TPAError(f'Too many names. The limit is {limits.names} names with {limits.characters} characters in all.')
    return names
