"""The folder that results are written to."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from ..utils import atomic_write
from ..visualization import picture_names
from .inputs import Skipped
from .picture import Picture

if TYPE_CHECKING:
    from .result import Result


class OutputFolder:
    """Writes ``overlays/``, ``labels/`` and ``comparisons/`` with one PNG per picture, and ``areas.json``.

    Args:
        folder: Where to.
        pictures: All pictures whose results will come, so that no two get the same name.
    """

    def __init__(self, folder: str | os.PathLike, pictures: Sequence[Picture]) -> None:
        self.folder = Path(folder)
        self._names = _file_names(pictures)
        self._entries: list[dict] = []
        self._about: dict = {}

    def add(self, result: Result) -> None:
        """Writes the pictures of one result."""
        name = self._names[result.picture]
        self._write(result.legend_overlay(), 'overlays', name)
        self._write(result.label_image(), 'labels', name)
        self._write(result.comparison(), 'comparisons', name)
        self._about = {'networks': result.about, 'classes': list(result.class_names)}
        self._entries.append({**result.as_dict(), 'labels': f'labels/{name}'})

    def finish(self, skipped: Sequence[Skipped] = ()) -> None:
        """Writes the areas of all pictures."""
        content = {**self._about, 'images': self._entries, 'skipped': [vars(each) for each in skipped]}
        with atomic_write(self.folder / 'areas.json', 'w') as file:
            json.dump(content, file, ensure_ascii=False, indent=1)

    def _write(self, image: Image.Image, kind: str, name: str) -> None:
        with atomic_write(self.folder / kind / name) as file:
            image.save(file, format='PNG')


def _file_names(pictures: Sequence[Picture]) -> dict[Picture, str]:
    """A PNG name for every picture; those of folders keep their subfolders."""
    of_files = picture_names([str(picture.path) for picture in pictures if picture.path is not None])
    taken = set(of_files.values())
    names = {}
    for number, picture in enumerate(pictures, start=1):
        if picture.path is not None:
            names[picture] = Path(of_files[str(picture.path)]).as_posix()
            continue
        name = f'image_{number}.png'
        names[picture] = name if name not in taken else f'image_{number}_in_memory.png'
    return names
