"""Videos by PyAV: frames in, H.264 out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from fractions import Fraction
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from PIL import Image

from ..errors import TPAError
from ..io import atomic_write
from .images import ImageSource

_DEFAULT_FPS = 25.0


class Video:
    """A video file to read.

    Args:
        path: The file.
        frame_stride: Reads every n-th frame.

    Attributes:
        fps: Frames per second, of those that are read.
        count: Number of frames that are read, None if the file does not contain it.
    """

    def __init__(self, path: str | os.PathLike, frame_stride: int = 1) -> None:
        if frame_stride < 1:
            raise TPAError(f'The frame stride must be at least 1, got {frame_stride}.')
        self.path, self.frame_stride = Path(path), frame_stride
        with self._open() as container:
            stream = container.streams.video[0]
            self.fps = float(stream.average_rate or _DEFAULT_FPS) / frame_stride
            self.count = -(-stream.frames // frame_stride) or None
            seconds = (container.duration or 0) / _av().time_base
            self._about = self.count or round(seconds * self.fps)

    def sample(self, count: int | None) -> Iterator[ImageSource]:
        """Yields frames evenly spread over the video, up to a number; all of them for None."""
        step = 1 if count is None else max(1, -(-self._about // count))
        return islice(Video(self.path, self.frame_stride * step), count)

    def __iter__(self) -> Iterator[ImageSource]:
        """Yields the frames."""
        number = 0
        with self._open() as container:
            container.streams.video[0].thread_type = 'AUTO'
            try:
                for number, frame in enumerate(container.decode(video=0)):
                    if number % self.frame_stride == 0:
                        # Phones store frames as the sensor has them, and how to turn them upright.
                        pixels = np.rot90(frame.to_ndarray(format='rgb24'), round(frame.rotation / 90))
                        yield ImageSource(f'{self.path.name}, frame {number}', np.ascontiguousarray(pixels))
            except _av().FFmpegError as error:
                warnings.warn(
                    f'{self.path} is damaged after frame {number} ({error}): the rest is skipped.', stacklevel=2
                )

    def _open(self) -> Any:
        if not self.path.is_file():
            raise TPAError(f'Video not found: {self.path}. Check the path.')
        try:
            container = _av().open(str(self.path))
        except _av().FFmpegError as error:
            raise TPAError(f'Cannot read the video {self.path}: its format is unknown, or it is damaged.') from error
        if not container.streams.video:
            raise TPAError(f'{self.path} contains no video stream.')
        return container


class VideoWriter:
    """A video file to write. It appears under its name when it is complete; use it in a ``with`` statement.

    Args:
        path: The file, an .mp4.
        fps: Frames per second.
    """

    def __init__(self, path: str | os.PathLike, fps: float) -> None:
        self.path = Path(path)
        # 29.97 stands for 30000/1001.
        self._rate = Fraction(fps).limit_denominator(1001)
        self._container: Any = None
        self._open = ExitStack()

    def add(self, image: Image.Image) -> None:
        """Adds a frame. All must have one size."""
        frame = np.asarray(image.convert('RGB'))
        # The codec halves the resolution of colors, so it needs even sides.
        frame = np.pad(frame, ((0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0)), mode='edge')
        if self._container is None:
            self._start(*frame.shape[:2])
        self._container.mux(self._stream.encode(_av().VideoFrame.from_ndarray(frame, format='rgb24')))

    def __enter__(self) -> VideoWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def _flush(self, kind: type | None, *_: object) -> None:
        if kind is None:
            self._container.mux(self._stream.encode(None))

    def _start(self, height: int, width: int) -> None:
        codec, options = 'libx264', {'crf': '18'}  # sharp enough for the edges of labels
        if codec not in _av().codecs_available:
            codec, options = 'mpeg4', {}
            warnings.warn(
                'PyAV was built without libx264: videos are written as MPEG-4 instead of H.264.', stacklevel=3
            )
        file = self._open.enter_context(atomic_write(self.path))
        container = _av().open(file.name, 'w', format='mp4', options={'movflags': 'faststart'})
        self._container = self._open.enter_context(container)
        self._open.push(self._flush)
        self._stream = self._container.add_stream(codec, self._rate, options=options)
        self._stream.height, self._stream.width, self._stream.pix_fmt = height, width, 'yuv420p'
        if codec == 'mpeg4':
            self._stream.bit_rate = 8 * height * width


def _av() -> Any:
    try:
        import av
    except ImportError as error:
        raise TPAError("Videos need PyAV. Install it with: pip install 'tpa_mmseg[video]'") from error
    return av
