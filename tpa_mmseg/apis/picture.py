"""One picture of a user: read when it is needed, and again when it is needed again."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
import torch
from PIL import Image, ImageOps

from ..datasets import LoadImage
from ..errors import TPAError
from ..visualization.images import to_rgb

_LOAD = LoadImage()


class Unreadable(TPAError):
    """A picture that cannot be read: others may be."""


class Picture:
    """A picture in a file or in memory.

    Args:
        name: What to call it in messages and file names.
        source: Its file, or its (H, W, 3) uint8 RGB pixels.
    """

    def __init__(self, name: str, source: Path | np.ndarray) -> None:
        self.name = name
        self.path = source if isinstance(source, Path) else None
        self._pixels = None if self.path is not None else source

    def load(self) -> dict:
        """What the first step of MMSegmentation's pipelines gives: (H, W, 3) BGR pixels, their shape, their file.

        Raises Unreadable for a file that is gone, damaged or no image.
        """
        if self.path is not None:
            try:
                return _LOAD.transform({'img_path': str(self.path)})
            except TPAError as error:
                raise Unreadable(str(error)) from error
        size = self._pixels.shape[:2]
        return {'img': np.ascontiguousarray(self._pixels[..., ::-1]), 'img_shape': size, 'ori_shape': size}

    def at(self, size: tuple[int, int]) -> Image.Image:
        """The picture for display. Args: size: height and width."""
        pixels = self.load()['img']
        if pixels.shape[:2] != tuple(size):
            shrinks = size[0] < pixels.shape[0] or size[1] < pixels.shape[1]
            how = cv2.INTER_AREA if shrinks else cv2.INTER_NEAREST
            pixels = cv2.resize(pixels, (size[1], size[0]), interpolation=how)
        return Image.fromarray(np.ascontiguousarray(pixels[..., ::-1]))

    @cached_property
    def key(self) -> str:
        """Identifies the content: a picture under another name is the same, and no path of a user gets into a bank."""
        if self.path is not None:
            content, shape = self._file(), b''
        else:
            content, shape = np.ascontiguousarray(self._pixels), repr(self._pixels.shape).encode()
        return hashlib.blake2b(content, key=shape, digest_size=16).hexdigest()

    def _file(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise Unreadable(f'The image {self.path} cannot be read ({error.strerror}): leave it out.') from error


def pixels_of(image: Image.Image | np.ndarray | torch.Tensor, name: str) -> np.ndarray:
    """(H, W, 3) uint8 RGB of a Pillow image, an array (H, W[, C]) or a tensor ([C,] H, W).

    Args:
        image: Gray, RGB or RGBA (whose transparent parts become white); uint8, uint16, bool, or floats from 0 to 1.
        name: What to call it where it cannot be understood.
    """
    if isinstance(image, torch.Tensor):
        image = image.detach().cpu()
        image = (image.float() if image.dtype == torch.bfloat16 else image).numpy()
        image = image.transpose(1, 2, 0) if image.ndim == 3 else image
    if isinstance(image, np.ndarray):
        image = _as_bytes(image, name)
        if image.ndim == 3 and image.shape[2] == 3:
            return image
        image = Image.fromarray(image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image)
    return np.asarray(to_rgb(ImageOps.exif_transpose(image)))


def _as_bytes(array: np.ndarray, name: str) -> np.ndarray:
    """The array in uint8. Raises TPAError for a shape or a range that is no image."""
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)) or 0 in array.shape:
        raise TPAError(
            f'{name} has the shape {array.shape}, which is no image: give arrays (H, W), (H, W, 3) or (H, W, 4), '
            'tensors (H, W), (3, H, W) or (4, H, W), or a batch of such images.'
        )
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.uint16:
        return (array >> 8).astype(np.uint8)
    if array.dtype == bool:
        return array.astype(np.uint8) * 255
    low, high = float(array.min()), float(array.max())
    if np.issubdtype(array.dtype, np.floating) and low >= 0 and high <= 1:
        return (array * 255).round().astype(np.uint8)
    if np.issubdtype(array.dtype, np.integer) and low >= 0 and high <= 255:
        return array.astype(np.uint8)
    raise TPAError(
        f'{name} holds {array.dtype} values from {low:g} to {high:g}: give uint8 from 0 to 255, or floats from 0 to 1 '
        '(undo any normalization first).'
    )
