"""The images of a user: files, folders, Pillow images, arrays and tensors, each as an ImageSource."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

import cv2
import mmengine.fileio
import numpy as np
import torch
from PIL import Image, ImageOps

from ..core.given import given
from ..datasets import LoadImage, decode_image
from ..datasets.pool import IMAGE_SUFFIXES
from ..errors import TPAError, printable
from ..images import UnreadableImage
from ..visualization.images import to_rgb

#: An image, a batch, a folder, or any collection of these.
Images = str | os.PathLike | Image.Image | np.ndarray | torch.Tensor | Iterable

VIDEO_SUFFIXES = ('.mp4', '.avi', '.mov', '.mkv', '.webm', '.m4v', '.mpg', '.mpeg')
_LOAD = LoadImage()


class ImageSource:
    """An image in a file or in memory. A file is read whenever its pixels are needed.

    Args:
        name: Its name in messages and file names.
        source: A path or an address of MMEngine's file backends; the content of such a file; or (H, W, 3) uint8 RGB
            pixels.
    """

    def __init__(self, name: str, source: str | os.PathLike | bytes | np.ndarray) -> None:
        self.name = name
        self.path: str | None = None
        self._content: bytes | np.ndarray | None = None
        if isinstance(source, (bytes, np.ndarray)):
            self._content = source
        else:
            self.path = os.fspath(source)

    @property
    def nbytes(self) -> int:
        """Bytes of an image in memory; 0 for a file."""
        content = self._content
        return content.nbytes if isinstance(content, np.ndarray) else len(content or b'')

    def load(self) -> dict:
        """Return the result of the first step of MMSegmentation's pipelines: (H, W, 3) BGR pixels, shape and path.

        Raises UnreadableImage for a file that is missing, damaged or not an image.
        """
        if self.path is not None:
            return _LOAD.transform({'img_path': self.path})
        content = self._content
        pixels = decode_image(content, self.name) if isinstance(content, bytes) else given(content)[..., ::-1]
        size = pixels.shape[:2]
        return {'img': np.ascontiguousarray(pixels), 'img_shape': size, 'ori_shape': size}

    def resized(self, size: tuple[int, int]) -> Image.Image:
        """Return the image for display. Args: size: Height and width."""
        pixels = self.load()['img']
        if pixels.shape[:2] != tuple(size):
            shrinks = size[0] < pixels.shape[0] or size[1] < pixels.shape[1]
            how = cv2.INTER_AREA if shrinks else cv2.INTER_NEAREST
            pixels = cv2.resize(pixels, (size[1], size[0]), interpolation=how)
        return Image.fromarray(np.ascontiguousarray(pixels[..., ::-1]))

    @cached_property
    def key(self) -> str:
        """Digest of the content: copies under other names are the same image, and no path gets into a bank."""
        content = self._content
        if isinstance(content, np.ndarray):
            pixels, shape = np.ascontiguousarray(content).data, repr(content.shape).encode()
            return hashlib.blake2b(pixels, key=shape, digest_size=16).hexdigest()
        return hashlib.blake2b(self._read() if content is None else content, digest_size=16).hexdigest()

    def _read(self) -> bytes:
        try:
            return mmengine.fileio.get(self.path)
        except OSError as error:
            reason = error.strerror or error
            raise UnreadableImage(f'Cannot read image {self.path} ({reason}). Remove it from the list.') from error


@dataclass
class Skipped:
    """A file that is left out. Args: name: Its name; reason: Why, in a few words."""

    name: str
    reason: str

    def __str__(self) -> str:
        return printable(f'{self.name}: {self.reason}')


@dataclass
class ImageList:
    """The images of an argument.

    Args:
        images: The images, in order.
        skipped: Files of folders that are not images, and images that could not be read.
        single: Whether one image was given, not a collection.
    """

    images: list[ImageSource] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    single: bool = False

    def skip(self, image: ImageSource, reason: str) -> None:
        """Move an image to those that are left out."""
        self.images.remove(image)
        self.skipped.append(Skipped(image.name, reason))


def list_images(images: Images | ImageList) -> ImageList:
    """Return all images of an argument, without opening files. Raises TPAError if there are none."""
    if isinstance(images, ImageList):
        return images
    found = ImageList(single=_is_single(images))
    _collect(images, found)
    if not found.images:
        reason = f' ({found.skipped[0]})' if found.skipped else ''
        raise TPAError(f'No images to segment{reason}. Give at least one image.')
    return found


def single_image(image: Images) -> ImageSource:
    """Return the only image of an argument. Raises TPAError for a collection."""
    found = list_images(image)
    if not found.single:
        raise TPAError('A single image is needed here: pass one image, or call segment for a collection.')
    return found.images[0]


def iterate_images(images: Images) -> Iterator[ImageSource]:
    """Yield the images of an argument one by one. A generator may be endless."""
    if isinstance(images, (str, os.PathLike)) or _is_single(images) or not isinstance(images, Iterable):
        yield from list_images(images).images
    else:
        for item in images:
            yield from iterate_images(item)


def is_video(path: str | os.PathLike) -> bool:
    return Path(path).suffix.lower() in VIDEO_SUFFIXES


def _is_single(images: Images) -> bool:
    if isinstance(images, (str, os.PathLike)):
        return not Path(images).expanduser().is_dir()
    if isinstance(images, (np.ndarray, torch.Tensor)):
        return images.ndim < 4
    return isinstance(images, (Image.Image, ImageSource))


def _collect(images: Images, found: ImageList) -> None:
    if isinstance(images, str) and '://' in images:
        found.images.append(ImageSource(PurePosixPath(images).name, images))
    elif isinstance(images, (str, os.PathLike)):
        found.images += _from_path(Path(images).expanduser(), found.skipped)
    elif isinstance(images, ImageSource):
        found.images.append(images)
    elif isinstance(images, Image.Image) or (isinstance(images, (np.ndarray, torch.Tensor)) and images.ndim < 4):
        name = f'image_{len(found.images) + 1}'
        found.images.append(ImageSource(name, pixels_of(images, name)))
    elif isinstance(images, Iterable):
        for image in images:
            _collect(image, found)
    else:
        raise TPAError(
            f'Unsupported image type {type(images).__name__}: pass paths, folders, Pillow images, arrays or tensors.'
        )


def _from_path(path: Path, skipped: list[Skipped]) -> Iterator[ImageSource]:
    if path.is_dir():
        for file in sorted(path.rglob('*')):
            if not file.is_file() or file.name.startswith('.'):
                continue
            if file.suffix in IMAGE_SUFFIXES:
                yield ImageSource(file.name, file)
            else:
                skipped.append(
                    Skipped(file.name, 'a video: pass the file itself' if is_video(file) else 'not an image')
                )
    elif is_video(path):
        raise TPAError(f'{path} is a video: pass it to tools/segment.py, or its frames to Segmenter.stream.')
    elif not path.is_file():  # a pipe would never end
        raise TPAError(f'Image not found: {path}. Check the path.')
    else:
        yield ImageSource(path.name, path)


def pixels_of(image: Image.Image | np.ndarray | torch.Tensor, name: str) -> np.ndarray:
    """Return (H, W, 3) uint8 RGB pixels of a Pillow image, an array (H, W[, C]) or a tensor ([C,] H, W).

    Args:
        image: Gray, RGB or RGBA (transparent parts become white); uint8, uint16, bool, or floats from 0 to 1.
        name: Its name in error messages.
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
    """Convert an array to uint8. Raises TPAError for the shape or the value range of anything but an image."""
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)) or 0 in array.shape:
        raise TPAError(
            f'Unsupported image shape {array.shape} of {name}: pass arrays (H, W), (H, W, 3) or (H, W, 4), '
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
        f'Unsupported {array.dtype} values from {low:g} to {high:g} in {name}: pass uint8 from 0 to 255, or floats '
        'from 0 to 1 (undo any normalization first).'
    )
