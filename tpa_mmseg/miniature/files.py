"""Scenes as files that nobody wrote: ``miniature://images/test/00012.png`` is painted when it is read.

MMEngine reads every file through a backend, so stock pipeline steps, hosts that look at the original picture again and
pictures of results take such a name for a file like any other.
"""

from __future__ import annotations

import errno
import posixpath
import re
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from mmengine.fileio import BaseStorageBackend, register_backend

from ..errors import TPAError
from .splits import SPLITS, split_of
from .world import Scene, paint

PREFIX = 'miniature'
_PATTERN = re.compile(rf'{PREFIX}://(images|labels)/({"|".join(SPLITS)})(?:-(\d+)x(\d+))?/(\d+)\.png')
# An image, its labels, and the image again for a second network are read shortly after each other.
_REMEMBERED = 32


def folder(kind: str, split: str, resolution: tuple[int, int] | None = None) -> str:
    """Where the files of a split are, below ``miniature://`` and in an exported folder alike.

    Args:
        kind: ``'images'`` or ``'labels'``.
        split: Name of the split.
        resolution: Height and width of all its scenes, None where each has its own.
    """
    suffix = '' if resolution is None else f'-{resolution[0]}x{resolution[1]}'
    return f'{kind}/{split}{suffix}'


def file_name(index: int) -> str:
    """The name of a scene's image and of its labels."""
    return f'{index:05d}.png'


@lru_cache(maxsize=_REMEMBERED)
def scene(split: str, index: int, resolution: tuple[int, int] | None = None) -> Scene:
    """A scene of a split. Args: its place in the split; resolution: as for :func:`folder`."""
    one = split_of(split)
    if not 0 <= index < one.most:
        raise TPAError(f'The split {split} has the scenes 0 to {one.most - 1}, not {index}.')
    return paint(one.seed(index), one.unusual, resolution)


def encode(pixels: np.ndarray) -> bytes:
    """A PNG. Args: pixels: (H, W, 3) RGB or (H, W) labels, uint8."""
    # Little compression: a scene is noisy, and mostly decoded at once.
    written = cv2.imencode('.png', pixels[..., ::-1] if pixels.ndim == 3 else pixels, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    return written[1].tobytes()


class SceneFiles(BaseStorageBackend):
    """The backend behind ``miniature://``."""

    def get(self, filepath: str | Path) -> bytes:
        """The PNG of an image or of its labels."""
        parts = _PATTERN.fullmatch(str(filepath))
        if parts is None:
            raise FileNotFoundError(errno.ENOENT, 'the miniature world has no such file', str(filepath))
        kind, split, height, width, index = parts.groups()
        found = scene(split, int(index), height and (int(height), int(width)))
        return encode(found.image if kind == 'images' else found.labels)

    def get_text(self, filepath: str | Path, encoding: str = 'utf-8') -> str:
        raise FileNotFoundError(errno.ENOENT, 'the miniature world has pictures only', str(filepath))

    def join_path(self, filepath: str | Path, *filepaths: str | Path) -> str:
        """MMEngine joins a dataset's folders to its root with it."""
        return posixpath.join(str(filepath), *map(str, filepaths))


register_backend(PREFIX, SceneFiles, prefixes=PREFIX, force=True)
