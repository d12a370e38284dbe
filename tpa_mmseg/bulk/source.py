"""Where many images come from, and which of them a shard takes. Lists files; opens none but lists."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import fsspec
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
    """Returns the files of a source: images, WebDataset tars and Parquet files.

    Args:
        addresses: Files, folders with subfolders, patterns with ``*``, and text files with an address per line; each a
            path or an address of fsspec, e.g. ``s3://bucket/photos``.
    """
    parts = [part for address in addresses for part in _parts(str(address))]
    if not parts:
        raise TPAError(f'No images, tar files or Parquet files in {", ".join(map(str, addresses))}. Check the address.')
    return _unique(parts)


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


def digest(parts: Iterable[Part]) -> str:
    """Identifies the files of a source by their addresses."""
    return hashlib.sha256('\n'.join(part.address for part in parts).encode()).hexdigest()[:16]


def open_address(address: str):
    """Opens a file anywhere for reading."""
    return fsspec.open(address, 'rb').open()


def clean(name: str) -> str:
    """Returns a path that stays below the folder into which it is unpacked."""
    return '/'.join(step for step in re.split(r'[/\\]', name) if step not in ('', '.', '..'))


def _parts(address: str) -> Iterator[Part]:
    try:
        fs, path = url_to_fs(address)
        if any(sign in path for sign in '*?['):
            found, root = fs.glob(path), re.split(r'[*?\[]', path)[0].rpartition('/')[0]
        elif fs.isdir(path):
            found, root = fs.find(path), path
        elif not fs.exists(path):
            raise TPAError(f'Source not found: {address}. Check the address.')
        elif path.endswith(_LISTS):
            yield from _listed(address)
            return
        else:
            found, root = [path], path.rpartition('/')[0]
    except ImportError as error:
        raise TPAError(f'Cannot open {address}: {error}') from error
    except (OSError, ValueError) as error:
        raise TPAError(f'Cannot list {address} ({error}). Check the address.') from error
    # Folder by folder, in the order of tpa segment.
    for file in sorted(found, key=lambda file: file.split('/')):
        if _readable(file):
            yield Part(_address(fs, file), clean(file.removeprefix(root)))


def _listed(address: str) -> Iterator[Part]:
    """Yields the files that a text file names, relative ones in its own folder."""
    fs, path = url_to_fs(address)
    folder = path.rpartition('/')[0]
    with fs.open(path, 'rt', encoding='utf-8') as lines:
        for line in filter(None, map(str.strip, lines)):
            if '://' in line or line.startswith('/'):
                yield Part(line, clean(line.partition('://')[2] or line))
            else:
                yield Part(_address(fs, f'{folder}/{line}'), clean(line))


def _address(fs, path: str) -> str:
    """Returns the address of a path; paths of this machine stay paths."""
    return path if isinstance(fs, fsspec.get_filesystem_class('file')) else fs.unstrip_protocol(path)


def _readable(path: str) -> bool:
    name = path.rpartition('/')[2]
    return not name.startswith('.') and name.endswith((*IMAGE_SUFFIXES, *_TARS, '.parquet'))


def _unique(parts: list[Part]) -> list[Part]:
    """Numbers the folders of files that several sources call the same, so that every image has its own name."""
    seen: dict[str, int] = {}
    unique = []
    for part in parts:
        seen[part.name] = seen.get(part.name, 0) + 1
        unique.append(part if seen[part.name] == 1 else replace(part, name=f'{seen[part.name]}/{part.name}'))
    return unique
