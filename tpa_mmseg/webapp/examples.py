"""The examples of the page, as examples.yaml lists them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mmengine.fileio

from ..apis.images import ImageSource, list_images


@dataclass(frozen=True)
class Example:
    """Images and class names that are one click away.

    Args:
        name: Its title.
        images: Paths, or addresses of MMEngine's file backends.
        classes: Name of each class, with ``;`` between synonyms.
        backbone: The CLIP model that fits the images.
        background: Whether to add a background.
    """

    name: str
    images: tuple[str, ...]
    classes: tuple[str, ...]
    backbone: str
    background: bool = False

    def sources(self) -> list[ImageSource]:
        """Return the images, which are read when they are needed."""
        return list_images(list(self.images)).images


def read_examples() -> list[Example]:
    """Read the examples that come with the package."""
    entries = mmengine.fileio.load(Path(__file__).with_name('examples.yaml'))
    return [Example(**entry) for entry in entries]
