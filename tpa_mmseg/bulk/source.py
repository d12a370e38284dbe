"""Where many images come from, and which of them a shard takes. Lists files; opens none but lists."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

from ..datasets.pool import IMAGE_SUFFIXES, PoolOptions
from ..errors import TPAError

_TARS = ('.tar', '.tar.gz', '.tgz')
_LISTS = ('.txt', '.lst')


@dataclass(frozen=True)
class Part:
    """A file of a source, or a share of its images.

    Args:
        address: Where it is: a path, or an address of fsspec.
        name: Its path within the source, with which the names of its images start.
        first: Number of the first image to take, for a file with many.
        step: Every how many images one is taken.
        limit: Most images to take. Default: all.
    """

    address: str
    name: str
    first: int = 0
    step: int = 1
    limit: int | None = None

    @property
    def kind(self) -> str:
        """``'image'``, ``'tar'`` or ``'parquet'``."""
        if self.address.endswith(_TARS):
            return 'tar'
        return 'parquet' if self.address.endswith('.parquet') else 'image'


def list_parts(addresses: Sequence[str]) -> list[Part]:
    """Returns the files of a source: images, WebDataset tars and Parquet files. Each is there once.

    Args:
        addresses: Files, folders with subfolders, patterns with ``*``, and text files with an address per line; each a
            path or an address of fsspec, e.g. ``s3://bucket/photos``.
    """
    found = list(dict.fromkeys(file for address in addresses for file in _find(str(address))))
    if not found:
        raise TPAError(f'No images, tar files or Parquet files in {", ".join(map(str, addresses))}. Check the address.')
    root = os.path.commonprefix(found).rpartition('/')[0]
    return [Part(file, clean(file.removeprefix(root))) for file in found]


def split(parts: Sequence[Part], shards: int) -> list[tuple[Part, ...]]:
    """Divides a source: the same files and number of shards give the same shards on every machine.

    Where there are fewer files than shards, several tasks read one tar or Parquet file, and each takes its share.
    """
    if shards < 1:
        raise TPAError(f'--shards must be at least 1, got {shards}.')
    pieces = -(-shards // len(parts))
    whole = [part for part in parts if part.kind == 'image']
    many = [replace(part, first=i, step=pieces) for part in parts if part.kind != 'image' for i in range(pieces)]
    divided = [*whole, *many]
    return [tuple(divided[number::shards]) for number in range(min(shards, len(divided)))]


def sample(parts: Sequence[Part], size: int, seed: int = 0) -> list[Part]:
    """Draws files for a pool, and how many images of each: of images the draw of ``PrototypeBankHook``.

    Tars do not contain their number of images, so the first ones of each drawn file are taken.
    """
    count = min(size, len(parts))
    drawn = [parts[index] for index in PoolOptions(size=count, seed=seed).draw(len(parts))]
    return [replace(part, limit=size // count + (number < size % count)) for number, part in enumerate(drawn)]


def clean(name: str) -> str:
    """Returns a path that stays below the folder into which it is unpacked."""
    return '/'.join(step for step in re.split(r'[/\\]', name) if step not in ('', '.', '..'))


def _find(address: str) -> Iterator[str]:
    try:
        fs, path = url_to_fs(address)
        if fs.isdir(path):
            path = f'{path}/**'
        elif path.endswith(_LISTS):
            yield from _listed(fs, path)
            return
        # Folder by folder, in the order of tpa segment.
        found = sorted(fs.glob(path), key=lambda file: file.split('/'))
    except (ImportError, OSError, ValueError) as error:  # without the driver of a file system, it is the first
        raise TPAError(f'Cannot list {address} ({error}). Check the address.') from error
    if not found:
        raise TPAError(f'Source not found: {address}. Check the address.')
    for file in found:
        name = file.rpartition('/')[2]
        if name.endswith((*IMAGE_SUFFIXES, *_TARS, '.parquet')) and not name.startswith('.'):
            yield _address(fs, file)


def _listed(fs: AbstractFileSystem, path: str) -> Iterator[str]:
    """Yields the files that a text file names, relative ones in its own folder."""
    with fs.open(path, 'rt', encoding='utf-8') as lines:
        for line in filter(None, map(str.strip, lines)):
            whole = '://' in line or line.startswith('/')
            yield line if whole else _address(fs, f'{path.rpartition("/")[0]}/{line}')


def _address(fs: AbstractFileSystem, path: str) -> str:
    """Returns the address of a path; paths of this machine stay paths."""
    return path if 'file' in fs.protocol else fs.unstrip_protocol(path)
