"""The folder that results are written to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from ..io import write_json, write_png
from ..visualization import figure_names
from .inputs import Skipped
from .picture import Picture
from .render import film_comparison, film_overlay
from .video import Video, VideoWriter

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
        self._stems: set[str] = set()
        self._about: dict = {}
        self._images: list[dict] = []
        self._videos: list[dict] = []

    def add(self, result: Result) -> None:
        """Writes the pictures of one result."""
        name = self._names[result.picture]
        self._write(result.legend_overlay(), 'overlays', name)
        self._write(result.label_image(), 'labels', name)
        self._write(result.comparison(), 'comparisons', name)
        self._images.append(self._describe(result, name))

    def add_video(self, video: Video, results: Iterable[Result]) -> int:
        """Writes two videos, and a label map per frame. Returns the number of frames.

        Args:
            video: Where the frames are from.
            results: Theirs, in order.
        """
        stem = self._video_stem(video)
        frames = []
        with (
            VideoWriter(self.folder / 'overlays' / f'{stem}.mp4', video.fps) as overlays,
            VideoWriter(self.folder / 'comparisons' / f'{stem}.mp4', video.fps) as comparisons,
        ):
            for number, result in enumerate(results):
                overlays.add(film_overlay(result))
                comparisons.add(film_comparison(result))
                name = f'{stem}/{number:06d}.png'
                self._write(result.label_image(), 'labels', name)
                frames.append(self._describe(result, name))
        self._videos.append({'video': video.path.name, 'frames_per_second': video.fps, 'frames': frames})
        return len(frames)

    def finish(self, skipped: Sequence[Skipped] = ()) -> None:
        """Writes the areas of all pictures."""
        skips = [vars(each) for each in skipped]
        content = {**self._about, 'images': self._images, 'videos': self._videos, 'skipped': skips}
        write_json(self.folder / 'areas.json', content)

    def _describe(self, result: Result, name: str) -> dict:
        self._about = {'networks': result.about, 'classes': list(result.class_names)}
        return {**result.as_dict(), 'labels': f'labels/{name}'}

    def _video_stem(self, video: Video) -> str:
        """A name for what a video becomes that no picture and no other video has."""
        taken = {Path(name).with_suffix('').as_posix() for name in self._names.values()} | self._stems
        stem, number = video.path.stem, 2
        while stem in taken:
            stem, number = f'{video.path.stem}_{number}', number + 1
        self._stems.add(stem)
        return stem

    def _write(self, image: Image.Image, kind: str, name: str) -> None:
        write_png(self.folder / kind / name, image)


def _file_names(pictures: Sequence[Picture]) -> dict[Picture, str]:
    """A PNG name for every picture; those of folders keep their subfolders."""
    of_files = figure_names([str(picture.path) for picture in pictures if picture.path is not None])
    taken = set(of_files.values())
    names = {}
    for number, picture in enumerate(pictures, start=1):
        if picture.path is not None:
            names[picture] = Path(of_files[str(picture.path)]).as_posix()
            continue
        name = f'image_{number}.png'
        names[picture] = name if name not in taken else f'image_{number}_in_memory.png'
    return names
