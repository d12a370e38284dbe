"""File names of figures, one per image of a dataset."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def figure_names(paths: Sequence[str]) -> dict[str, str]:
    """Returns a PNG name for every image, relative to the folder of the figures.

    Images of one folder keep their names; images of several keep the folders below the one they share. If two names
    differ only in their suffix, all figures keep the suffix of the image too.
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
