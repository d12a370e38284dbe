"""Writes scenes as files, in the layout that MMSegmentation's datasets have."""

from __future__ import annotations

from pathlib import Path

from tpa_mmseg.console import track
from tpa_mmseg.io import atomic_write
from tpa_mmseg.miniature.files import encode, file_name, folder, scene


def export(root: Path, split: str, size: int, resolution: tuple[int, int] | None = None) -> None:
    """Writes ``images/<split>/*.png`` and ``labels/<split>/*.png``.

    Args:
        root: The folder; ``MiniatureDataset(data_root=root)`` reads it.
        split: Name of the split.
        size: The first so many scenes.
        resolution: Height and width of all scenes, None for each scene's own.
    """
    for index in track(range(size), f'Painting {split}', unit='scenes'):
        painted = scene(split, index, resolution)
        for kind, pixels in (('images', painted.image), ('labels', painted.labels)):
            with atomic_write(Path(root) / folder(kind, split, resolution) / file_name(index)) as file:
                file.write(encode(pixels))
