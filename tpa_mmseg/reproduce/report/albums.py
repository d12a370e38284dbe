"""Pictures of runs for a page: smaller, as text, and together within what a page may hold."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

from ...visualization import read_image
from ..folders import RunView
from ..frames import labels
from .words import WORDS

# Panels side by side are wide; more pixels than the first a screen rarely has.
_LONGEST = (1600, 1200, 900, 640, 400)
#: What all pictures of a page may have together.
_BYTES = 7 << 20


@dataclass
class Album:
    """Pictures of one image.

    Args:
        title: Whose, and why this image.
        captions, images: By kind of picture; None if the file is missing.
        pictures: The images as data URIs.
    """

    title: str
    captions: dict[str, str] = field(default_factory=dict)
    images: dict[str, Image.Image | None] = field(default_factory=dict)
    pictures: dict[str, str | None] = field(default_factory=dict)


def albums(views: Iterable[RunView]) -> list[Album]:
    """Returns the pictures of all finished runs, all of them reduced alike until the page can hold them."""
    found: dict[tuple[str, str], Album] = {}
    for view in views:
        name = '{host} {backbone}, {benchmark}'.format(**labels(view.run))
        for picture in view.result.pictures if view.result is not None else ():
            stem = picture.file.removesuffix(f'-{picture.kind}.png')
            title = f'{name}: {WORDS["choices"].get(picture.choice, picture.choice)}'
            album = found.setdefault((view.run.name, stem), Album(title))
            album.captions[picture.kind] = picture.caption
            album.images[picture.kind] = read_image(_inside(view.folder.path, picture.file))
    for longest in _LONGEST:
        for album in found.values():
            album.pictures = {kind: image and _uri(image, longest) for kind, image in album.images.items()}
        if sum(len(uri or '') for album in found.values() for uri in album.pictures.values()) <= _BYTES:
            break
    return list(found.values())


def _inside(folder: Path, name: str) -> Path | None:
    """The file of a run's own folder; None if a link leads elsewhere."""
    file = (folder / name).resolve()
    return file if file.is_relative_to(folder.resolve()) else None


def _uri(image: Image.Image, longest: int) -> str:
    small = image.copy()
    small.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    small.save(out, format='WEBP', quality=80, method=4)
    return f'data:image/webp;base64,{base64.b64encode(out.getvalue()).decode("ascii")}'
