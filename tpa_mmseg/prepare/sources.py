"""Sources of a dataset: official archives, unpacked folders and single files, all read in the same way.

Nothing is unpacked to disk. A file is found by the end of its path, because archives and folders begin at different
levels. Its target comes from the layout of the dataset, never from the archive.
"""

from __future__ import annotations

import os
import re
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from ..errors import TPAError

# Long names and the like are in headers of their own, which tarfile reads as a whole.
_TAR_HEADER = 2**20


@dataclass(frozen=True)
class Limits:
    """The largest files that are read. An archive of a few kilobytes may unfold to more than there is memory.

    Args:
        file_mb: Size of an image, a label or a list in MB.
        json_mb: Size of an annotation file in MB.
    """

    file_mb: float = 64
    json_mb: float = 2048


class Source:
    """One archive, folder or file.

    Args:
        path: Its path.
        limits: The largest files.
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path, self._limits = path, limits

    def names(self) -> list[str]:
        """Returns the paths of all files in it, in the order in which reading is fast."""
        raise NotImplementedError

    def read(self, name: str) -> bytes:
        """Returns the content of a file."""
        place = str(self.file(name) or f'{name} in {self.path}')
        with _damage_named(place):
            size, stream = self._open(name)
            with stream:
                megabytes = self._limits.json_mb if name.endswith('.json') else self._limits.file_mb
                if size > megabytes * 2**20:
                    raise TPAError(
                        f'{place} has {size / 2**20:,.0f} MB, but the limit is {megabytes:g} MB. If this is the '
                        'official file, raise --max-file-mb or --max-json-mb.'
                    )
                # One byte more than promised: nothing beyond it is read, whatever follows.
                content = stream.read(size + 1)
            if len(content) != size:
                raise EOFError(f'it does not have {size} bytes')
            return content

    def _open(self, name: str) -> tuple[int, IO[bytes]]:
        """Opens a file and returns its size, from its header, and its stream."""
        path = self.file(name)
        check_regular(path)
        return path.stat().st_size, path.open('rb')

    def file(self, name: str) -> Path | None:
        """Returns the file on disk, None inside an archive."""
        return None

    def close(self) -> None:
        """Closes the archive."""


class Zip(Source):
    """A zip archive."""

    def __init__(self, path: Path, limits: Limits) -> None:
        super().__init__(path, limits)
        with _damage_named(path):
            self._archive = zipfile.ZipFile(path)

    def names(self) -> list[str]:
        members = [member for member in self._archive.infolist() if not member.is_dir()]
        return [member.filename for member in sorted(members, key=lambda member: member.header_offset)]

    def _open(self, name: str) -> tuple[int, IO[bytes]]:
        member = self._archive.getinfo(name)
        # The others unfold a whole block at once, however large it is.
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise zipfile.BadZipFile('unusual compression')
        return member.file_size, self._archive.open(member)

    def close(self) -> None:
        self._archive.close()


class _TarMember(tarfile.TarInfo):
    """Refuses what makes tarfile read without end. No official archive has any of it."""

    @classmethod
    def frombuf(cls, buf: bytes, encoding: str, errors: str) -> _TarMember:
        member = super().frombuf(buf, encoding, errors)
        plain = member.type in (*tarfile.REGULAR_TYPES, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE)
        if member.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError('sparse file')
        if not plain and member.size > _TAR_HEADER:
            raise tarfile.ReadError('huge header')
        return member

    @property
    def size(self) -> int:
        return tarfile.TarInfo.size.__get__(self)

    @size.setter
    def size(self, value: int) -> None:
        if value < 0:
            raise tarfile.ReadError('negative size')
        tarfile.TarInfo.size.__set__(self, value)

    def _proc_gnusparse_10(self, *_: object) -> None:
        raise tarfile.ReadError('sparse file')


class Tar(Source):
    """A tar archive, compressed or not. If compressed, it can only be read from beginning to end."""

    def __init__(self, path: Path, limits: Limits) -> None:
        super().__init__(path, limits)
        with _damage_named(path):
            self._archive = tarfile.open(path, tarinfo=_TarMember)  # noqa: SIM115  (closed with the source)
            self._members = {member.name.removeprefix('./'): member for member in self._archive if member.isfile()}

    def names(self) -> list[str]:
        return list(self._members)

    def _open(self, name: str) -> tuple[int, IO[bytes]]:
        return self._members[name].size, self._archive.extractfile(self._members[name])

    def close(self) -> None:
        self._archive.close()


class Folder(Source):
    """A folder, with the targets of its symlinks."""

    def names(self) -> list[str]:
        found, seen = [], set()
        for folder, below, files in os.walk(self.path, followlinks=True):
            seen.add(os.path.realpath(folder))
            # A symlink to a folder above would never end.
            below[:] = sorted(name for name in below if os.path.realpath(os.path.join(folder, name)) not in seen)
            found += [os.path.join(folder, name) for name in sorted(files)]
        return [Path(file).relative_to(self.path).as_posix() for file in found]

    def file(self, name: str) -> Path:
        return self.path / name


class SingleFile(Source):
    """A file that is not an archive, e.g. annotations in JSON."""

    def names(self) -> list[str]:
        return [self.path.name]

    def file(self, name: str) -> Path:
        return self.path


@dataclass(frozen=True)
class Member:
    """One file of a source.

    Args:
        source: The source.
        name: Its path in the source.
        place: Its position among the files of all sources, in the order in which reading is fast.
    """

    source: Source
    name: str
    place: int

    def read(self) -> bytes:
        """Returns its content."""
        return self.source.read(self.name)

    @property
    def file(self) -> Path | None:
        """Its path on disk, None inside an archive."""
        return self.source.file(self.name)

    def __str__(self) -> str:
        return str(self.file or f'{self.name} in {self.source.path}')


class Sources:
    """All sources of a dataset.

    Args:
        paths: Archives, folders, files.
        limits: The largest files that are read.
    """

    def __init__(self, paths: Sequence[str | os.PathLike], limits: Limits | None = None) -> None:
        self._sources: list[Source] = []
        self._members: list[Member] = []
        for path in paths:
            source = _open(Path(path).expanduser(), limits or Limits())
            self._sources.append(source)
            names = enumerate(_checked(source), start=len(self._members))
            self._members += [Member(source, name, place) for place, name in names]

    def __enter__(self) -> Sources:
        return self

    def __exit__(self, *_: object) -> None:
        for source in self._sources:
            source.close()

    def __str__(self) -> str:
        return ', '.join(str(source.path) for source in self._sources)

    def files(self, ending: str) -> dict[str, Member]:
        """Returns the files whose path has this ending.

        Args:
            ending: A regular expression for whole names at the end of a path, with a group that identifies the file:
                ``r'val2017/(\\d+)\\.jpg'``.

        Returns:
            Identity -> file, in an order in which reading is fast.
        """
        pattern = re.compile(f'(?:^|/)(?:{ending})$')
        found: dict[str, Member] = {}
        for member in self._members:
            match = pattern.search(member.name)
            if match is None:
                continue
            identity = match.group(1)
            if identity in found:
                raise TPAError(f'Two files for {identity}: {found[identity]} and {member}. Pass only one of them.')
            found[identity] = member
        return found

    def one(self, ending: str) -> Member | None:
        """Returns the file whose path has this ending, None if there is none."""
        found = list(self.files(f'({ending})').values())
        return found[0] if found else None


def _open(path: Path, limits: Limits) -> Source:
    """Recognizes a source by its content, because browsers rename downloads."""
    if path.is_dir():
        return Folder(path, limits)
    if not path.is_file():
        raise TPAError(f'Source not found: {path}. Check --source.')
    with _damage_named(path), path.open('rb') as file:
        head = file.read(512).lstrip()
    if head.startswith(b'PK'):
        return Zip(path, limits)
    if head.startswith((b'{', b'[')):
        return SingleFile(path, limits)
    if head.startswith(b'<'):
        raise TPAError(f'{path} is an HTML page, not an archive. Log in on the website and download it again.')
    return Tar(path, limits)


def _checked(source: Source) -> Iterator[str]:
    """Yields the names of a source, without those that macOS adds. A name outside of the archive is refused."""
    for name in source.names():
        path = PurePosixPath(name)
        if path.is_absolute() or '..' in path.parts:
            raise TPAError(
                f'{source.path} contains a file named {name}, which is outside of the archive. '
                'This is not the official archive: do not use it.'
            )
        if not path.name.startswith('._') and '__MACOSX' not in path.parts:
            yield name


def check_regular(path: Path) -> None:
    """Raises TPAError for a pipe, socket or device, which may never end."""
    if path.exists() and not path.is_file():
        raise TPAError(f'{path} is a pipe or a device, not a file. Remove it from the folder.')


@contextmanager
def _damage_named(place: str | os.PathLike) -> Iterator[None]:
    """Turns the exceptions of readers into TPAError."""
    try:
        yield
    except TPAError:
        raise
    except MemoryError as error:
        raise TPAError(f'Not enough memory to read {place}. Free some and rerun.') from error
    except OSError as error:
        raise TPAError(f'Cannot read {place} ({error.strerror or error}). Check the file and rerun.') from error
    except Exception as error:  # a damaged archive can raise almost anything
        # tarfile adds a line for each of its decoders.
        reason = re.split(r':|\n', str(error))[0] or type(error).__name__
        raise TPAError(
            f'Cannot read {place} ({reason}). It is truncated, damaged or not an archive: download it again.'
        ) from error
