"""The folder that segmentations are written to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from PIL import Image

from ..io import atomic_write, write_json, write_png
from ..visualization import figure_names
from .images import ImageSource, Skipped
from .render import LabeledImage, compare, label_image, legend_overlay, video_comparison, video_overlay
from .video import Video, VideoWriter


class Savable(LabeledImage, Protocol):
    """A labeled image with the text of its entry in ``areas.json``, e.g. a ``Segmentation``."""

    @property
    def description(self) -> str: ...

    def as_dict(self) -> dict: ...


class OutputFolder:
    """Writes ``overlays/``, ``labels/`` and ``comparisons/`` with one PNG per image, and ``areas.json``.

    Args:
        folder: The folder.
        images: All images whose segmentations will be added, so that no two get the same name.
    """

    def __init__(self, folder: str | os.PathLike, images: Sequence[ImageSource]) -> None:
        self.folder = Path(folder)
        self._names = _file_names(images)
        self._stems: set[str] = set()
        self._header: dict = {}
        self._images: list[dict] = []
        self._videos: list[dict] = []

    def add(self, result: Savable) -> None:
        """Write the figures of one image."""
        name = self._names[result.image]
        self._write(legend_overlay(result), 'overlays', name)
        self._write(label_image(result.labels, result.palette), 'labels', name)
        self._write(compare(result), 'comparisons', name)
        self._images.append(self._entry(result, name))

    def add_video(self, video: Video, results: Iterable[Savable]) -> None:
        """Write the frames of a video as they come: two videos, a label image and a line of areas for each frame.

        Args:
            video: The source of the frames.
            results: Their segmentations, in order.
        """
        stem = self._video_stem(video)
        number, areas = 0, f'areas/{stem}.jsonl'
        with (
            atomic_write(self.folder / areas, 'w') as lines,
            VideoWriter(self.folder / 'overlays' / f'{stem}.mp4', video.fps) as overlays,
            VideoWriter(self.folder / 'comparisons' / f'{stem}.mp4', video.fps) as comparisons,
        ):
            for number, result in enumerate(results, start=1):
                overlays.add(video_overlay(result))
                comparisons.add(video_comparison(result))
                name = f'{stem}/{number - 1:06d}.png'
                self._write(label_image(result.labels, result.palette), 'labels', name)
                print(json.dumps(self._entry(result, name), ensure_ascii=False), file=lines)
        found = {'video': video.path.name, 'frames_per_second': video.fps, 'frames': number, 'areas': areas}
        self._videos.append(found)

    def finish(self, skipped: Sequence[Skipped] = ()) -> None:
        """Write the areas of all images."""
        skips = [vars(each) for each in skipped]
        content = {**self._header, 'images': self._images, 'videos': self._videos, 'skipped': skips}
        write_json(self.folder / 'areas.json', content)

    def _entry(self, result: Savable, name: str) -> dict:
        self._header = {'model': result.description, 'classes': list(result.classes)}
        return {**result.as_dict(), 'labels': f'labels/{name}'}

    def _video_stem(self, video: Video) -> str:
        """Return a name for the outputs of a video that no image and no other video has."""
        taken = {Path(name).with_suffix('').as_posix() for name in self._names.values()} | self._stems
        stem, number = video.path.stem, 2
        while stem in taken:
            stem, number = f'{video.path.stem}_{number}', number + 1
        self._stems.add(stem)
        return stem

    def _write(self, image: Image.Image, kind: str, name: str) -> None:
        write_png(self.folder / kind / name, image)


def _file_names(images: Sequence[ImageSource]) -> dict[ImageSource, str]:
    """Return a PNG name for every image; those of folders keep their subfolders."""
    of_files = figure_names([image.path for image in images if image.path is not None])
    taken = set(of_files.values())
    names = {}
    for number, image in enumerate(images, start=1):
        if image.path is not None:
            names[image] = Path(of_files[image.path]).as_posix()
            continue
        name = f'image_{number}.png'
        names[image] = name if name not in taken else f'image_{number}_in_memory.png'
    return names
