"""Videos: frames in, pictures of results out. OpenCV reads and writes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from ..errors import TPAError
from .images import ImageSource

_FRAMES_PER_SECOND = 25.0


class Video:
    """A video file to read.

    Args:
        path: The file.
        every: Take only one of so many frames.

    Attributes:
        fps: Frames per second that are taken.
        count: How many frames these are, as far as the file says; None where it does not.
    """

    def __init__(self, path: str | os.PathLike, every: int = 1) -> None:
        if every < 1:
            raise TPAError(f'Every how many frames one is taken must be at least 1, not {every}.')
        self.path, self.every = Path(path), every
        capture = self._open()
        self.fps = (capture.get(cv2.CAP_PROP_FPS) or _FRAMES_PER_SECOND) / every
        count = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
        self.count = -(-count // every) if count > 0 else None
        capture.release()

    def __iter__(self) -> Iterator[ImageSource]:
        """The frames."""
        capture = self._open()
        try:
            number = 0
            while capture.grab():
                if number % self.every == 0:
                    readable, frame = capture.retrieve()
                    if not readable:
                        return
                    yield ImageSource(f'{self.path.name}, frame {number}', np.ascontiguousarray(frame[..., ::-1]))
                number += 1
        finally:
            capture.release()

    def _open(self) -> cv2.VideoCapture:
        if not self.path.is_file():
            raise TPAError(f'There is no video {self.path}: correct the path.')
        capture = cv2.VideoCapture(str(self.path))
        if not capture.isOpened():
            raise TPAError(f'The video {self.path} cannot be read: OpenCV does not know its format, or it is damaged.')
        return capture


class Film:
    """A video file to write. It appears under its name once it is complete.

    Args:
        path: The file, an .mp4.
        fps: Frames per second.
    """

    def __init__(self, path: str | os.PathLike, fps: float) -> None:
        self.path, self.fps = Path(path), fps
        self._partial = self.path.with_name(f'.{self.path.stem}.part{self.path.suffix}')
        self._writer: cv2.VideoWriter | None = None

    def add(self, image: Image.Image) -> None:
        """Adds a frame; all must have one size."""
        # The codec wants even sides.
        frame = np.asarray(image)[: image.height // 2 * 2, : image.width // 2 * 2, ::-1]
        if self._writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            codec = cv2.VideoWriter_fourcc(*'mp4v')
            self._writer = cv2.VideoWriter(str(self._partial), codec, self.fps, (frame.shape[1], frame.shape[0]))
            if not self._writer.isOpened():
                raise TPAError(
                    f'{self.path} cannot be written: OpenCV has no encoder for it, or the place is read-only.'
                )
        self._writer.write(np.ascontiguousarray(frame))

    def close(self) -> None:
        """Completes the file."""
        if self._writer is not None:
            self._writer.release()
            os.replace(self._partial, self.path)
