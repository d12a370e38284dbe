"""From whatever a user calls images to a list of pictures: files, folders, Pillow images, arrays, tensors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ..datasets.pool import IMAGE_SUFFIXES
from ..errors import TPAError
from .picture import Picture, pixels_of

#: A picture, a batch, a folder, or any collection of these.
Images = str | os.PathLike | Image.Image | np.ndarray | torch.Tensor | Iterable

VIDEO_SUFFIXES = ('.mp4', '.avi', '.mov', '.mkv', '.webm', '.m4v', '.mpg', '.mpeg')


@dataclass
class Skipped:
    """A file that is left out. Args: name: its name; reason: why, in a few words."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f'{self.name}: {self.reason}'


@dataclass
class Collected:
    """What was found.

    Args:
        pictures: The pictures, in order.
        skipped: Files of the folders that are no images.
        single: Whether one image was given, not a collection.
    """

    pictures: list[Picture] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    single: bool = False

    def skip(self, picture: Picture, reason: str) -> None:
        """Takes a picture out."""
        self.pictures.remove(picture)
        self.skipped.append(Skipped(picture.name, reason))


def collect(images: Images | Collected) -> Collected:
    """All pictures of an argument. Files are not opened yet. Raises TPAError where there are none."""
    if isinstance(images, Collected):
        return images
    found = Collected(single=_is_single(images))
    _gather(images, found)
    if not found.pictures:
        reasons = f' ({found.skipped[0]})' if found.skipped else ''
        raise TPAError(f'There are no images to segment{reasons}: give at least one.')
    return found


def lazily(images: Images) -> Iterator[Picture]:
    """The pictures of an argument one by one, of which there may be no end."""
    if isinstance(images, (str, os.PathLike)) or _is_single(images) or not isinstance(images, Iterable):
        yield from collect(images).pictures
    else:
        for item in images:
            yield from lazily(item)


def is_video(path: str | os.PathLike) -> bool:
    return Path(path).suffix.lower() in VIDEO_SUFFIXES


def _is_single(images: Images) -> bool:
    if isinstance(images, (str, os.PathLike)):
        return not Path(images).expanduser().is_dir()
    if isinstance(images, (np.ndarray, torch.Tensor)):
        return images.ndim < 4
    return isinstance(images, (Image.Image, Picture))


def _gather(images: Images, found: Collected) -> None:
    if isinstance(images, (str, os.PathLike)):
        found.pictures += _from_path(Path(images).expanduser(), found.skipped)
    elif isinstance(images, Picture):
        found.pictures.append(images)
    elif isinstance(images, Image.Image) or (isinstance(images, (np.ndarray, torch.Tensor)) and images.ndim < 4):
        name = f'image_{len(found.pictures) + 1}'
        found.pictures.append(Picture(name, pixels_of(images, name)))
    elif isinstance(images, Iterable):
        for image in images:
            _gather(image, found)
    else:
        raise TPAError(f'A {type(images).__name__} is no image: give paths, folders, Pillow images, arrays or tensors.')


def _from_path(path: Path, skipped: list[Skipped]) -> Iterator[Picture]:
    if path.is_dir():
        for file in sorted(path.rglob('*')):
            if not file.is_file() or file.name.startswith('.'):
                continue
            if file.suffix in IMAGE_SUFFIXES:
                yield Picture(file.name, file)
            else:
                skipped.append(
                    Skipped(file.name, 'a video: name the file itself' if is_video(file) else 'not an image')
                )
    elif is_video(path):
        raise TPAError(f'{path} is a video: give it to tools/segment.py, or its frames to Segmenter.stream.')
    elif not path.exists():
        raise TPAError(f'There is no image {path}: correct the path.')
    else:
        yield Picture(path.name, path)
