"""Sources of a dataset: official archives, unpacked folders and single files, all read in the same way.

Nothing is unpacked to disk. A file is found by the end of its path, because archives and folders begin at different
levels. Its target comes from the layout of the dataset, never from the archive.
"""

from __future__ import annotations

import os
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import TPAError

# zipfile raises RuntimeError for passwords and for compressions that it does not support.
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError)


class Source:
    """One archive, folder or file.

    Args:
        path: Its path.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> list[str]:
        """Returns the paths of all files in it, in the order in which reading is fast."""
        raise NotImplementedError

    def read(self, name: str) -> bytes:
        """Returns the content of a file."""
        raise NotImplementedError

    def file(self, name: str) -> Path | None:
        """Returns the file on disk, None inside an archive."""
        return None

    def close(self) -> None:
        """Closes the archive."""


class Zip(Source):
    """A zip archive."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with _damage_named(path):
            self._archive = zipfile.ZipFile(path)

    def names(self) -> list[str]:
        members = [member for member in self._archive.infolist() if not member.is_dir()]
        return [member.filename for member in sorted(members, key=lambda member: member.header_offset)]

    def read(self, name: str) -> bytes:
        with _damage_named(self.path, name):
            return self._archive.read(name)

    def close(self) -> None:
        self._archive.close()


class Tar(Source):
    """A tar archive, compressed or not. If compressed, it can only be read from beginning to end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with _damage_named(path):
            self._archive = tarfile.open(path)  # noqa: SIM115  (closed with the source)
            self._members = {member.name.removeprefix('./'): member for member in self._archive if member.isfile()}

    def names(self) -> list[str]:
        return list(self._members)

    def read(self, name: str) -> bytes:
        with _damage_named(self.path, name):
            return self._archive.extractfile(self._members[name]).read()

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

    def read(self, name: str) -> bytes:
        with _damage_named(self.file(name)):
            return self.file(name).read_bytes()

    def file(self, name: str) -> Path:
        return self.path / name


class SingleFile(Source):
    """A file that is not an archive, e.g. annotations in JSON."""

    def names(self) -> list[str]:
        return [self.path.name]

    def read(self, name: str) -> bytes:
        with _damage_named(self.path):
            return self.path.read_bytes()

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
    """

    def __init__(self, paths: Sequence[str | os.PathLike]) -> None:
        self._sources: list[Source] = []
        self._members: list[Member] = []
        for path in paths:
            source = _open(Path(path).expanduser())
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


def _open(path: Path) -> Source:
    """Recognizes a source by its content, because browsers rename downloads."""
    if path.is_dir():
        return Folder(path)
    if not path.is_file():
        raise TPAError(f'Source not found: {path}. Check --source.')
    with _damage_named(path), path.open('rb') as file:
        head = file.read(512).lstrip()
    if head.startswith(b'PK'):
        return Zip(path)
    if head.startswith((b'{', b'[')):
        return SingleFile(path)
    if head.startswith(b'<'):
        raise TPAError(f'{path} is an HTML page, not an archive. Log in on the website and download it again.')
    return Tar(path)


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


@contextmanager
def _damage_named(path: Path, name: str | None = None) -> Iterator[None]:
    """Turns the exceptions of readers into TPAError."""
    try:
        yield
    except OSError as error:
        raise TPAError(f'Cannot read {path} ({error.strerror or error}). Check the file and rerun.') from error
    except _DAMAGE as error:
        place = f'{name} in {path}' if name else str(path)
        # tarfile adds a line for each of its decoders.
        reason = re.split(r':|\n', str(error))[0] or type(error).__name__
        raise TPAError(
            f'Cannot read {place} ({reason}). It is truncated, damaged or not an archive: download it again.'
        ) from error
