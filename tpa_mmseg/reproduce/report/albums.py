"""Pictures of runs for a page: smaller, as text, and together within what a page may hold."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from ...visualization import read_image
from ..folders import RunView
from ..frames import labels

# Panels side by side are wide; more pixels than the first a screen rarely has.
_LONGEST = (1600, 1200, 900, 640, 400)
_QUALITY = 80
#: What all pictures of a page may have together.
_BYTES = 7 << 20
_CHOICES = {
    'best': 'where TPA helps most',
    'typical': 'where it does as usual',
    'worst': 'where it helps least, or harms',
    'most': 'anchors of the most classes',
}
_KINDS = ('comparison', 'anchors', 'host', 'tpa')


@dataclass(frozen=True)
class Album:
    """Pictures of one image. Args: title; captions and pictures by kind: a data URI, or None if the file is missing."""

    title: str
    captions: dict[str, str]
    pictures: dict[str, str | None]


def albums(views: Iterable[RunView]) -> list[Album]:
    """Returns the pictures of all finished runs, all of them reduced alike until the page can hold them."""
    groups: dict[tuple[str, str], dict[str, tuple[Path, str]]] = {}
    for view in views:
        for picture in view.result.pictures if view.result is not None else ():
            if picture.kind in _KINDS:
                stem = picture.file.removesuffix(f'-{picture.kind}.png')
                title = '{host} {backbone}, {benchmark}: '.format(**labels(view.run))
                title += _CHOICES.get(picture.choice, picture.choice)
                group = groups.setdefault((f'{view.run.name}/{stem}', title), {})
                group[picture.kind] = _inside(view.folder.path, picture.file), picture.caption
    images = [read_image(file) for group in groups.values() for file, _ in group.values()]
    embedded = iter(_embed(images))
    return [
        Album(title, {kind: caption for kind, (_, caption) in group.items()}, {kind: next(embedded) for kind in group})
        for (_, title), group in groups.items()
    ]


def _inside(folder: Path, name: str) -> Path | None:
    """The file of a run's own folder; None if a link leads elsewhere."""
    file = (folder / name).resolve()
    return file if file.is_relative_to(folder.resolve()) else None


def _embed(images: Sequence[Image.Image | None]) -> list[str | None]:
    found: list[str | None] = []
    for longest in _LONGEST:
        found = [None if image is None else _uri(image, longest) for image in images]
        if sum(len(uri) for uri in found if uri) <= _BYTES:
            break
    return found


def _uri(image: Image.Image, longest: int) -> str:
    small = image.copy()
    small.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    small.save(out, format='WEBP', quality=_QUALITY, method=4)
    return f'data:image/webp;base64,{base64.b64encode(out.getvalue()).decode("ascii")}'
