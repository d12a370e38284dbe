"""File names of pictures, one per image of a dataset."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def picture_names(paths: Sequence[str]) -> dict[str, str]:
    """A PNG name for every image, relative to the folder for pictures.

    Images of one folder keep their names; images of several keep the folders below the one they share. Where two
    names differ only in their suffix, all pictures keep the image's suffix too.
    """
    if not paths:
        return {}
    places = {path: os.path.abspath(path) for path in paths}
    shared = os.path.commonpath([os.path.dirname(place) for place in places.values()])
    relative = {path: Path(os.path.relpath(place, shared)) for path, place in places.items()}
    names = {path: str(place.with_suffix('.png')) for path, place in relative.items()}
    if len(set(names.values())) < len(set(relative.values())):
        names = {path: f'{place}.png' for path, place in relative.items()}
    return names
