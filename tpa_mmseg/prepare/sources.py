"""Where a dataset comes from: archives as the sites ship them, unpacked folders and single files, read alike.

Nothing is unpacked to the disk. A file is found by the end of its path, because archives and folders begin at
different levels, and it is written to a place that the dataset's layout names, never to one that the archive names.
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

# RuntimeError is what zipfile says to a password and to compressions it does not know.
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError)


class Source:
    """One archive, folder or file.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> list[str]:
        """The paths of all files in it, in the order in which reading them is fast."""
        raise NotImplementedError

    def read(self, name: str) -> bytes:
        """The content of one of them."""
        raise NotImplementedError

    def file(self, name: str) -> Path | None:
        """The file on the disk, None inside an archive."""
        return None

    def close(self) -> None:
        """Lets go of an open archive."""


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
    """A tar archive, compressed or not. One that is compressed can only be read from its beginning to its end."""

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
    """A folder, with all that its links lead to."""

    def names(self) -> list[str]:
        found, seen = [], set()
        for folder, below, files in os.walk(self.path, followlinks=True):
            seen.add(os.path.realpath(folder))
            # A link to a folder above would lead round and round.
            below[:] = sorted(name for name in below if os.path.realpath(os.path.join(folder, name)) not in seen)
            found += [os.path.join(folder, name) for name in sorted(files)]
        return [Path(file).relative_to(self.path).as_posix() for file in found]

    def read(self, name: str) -> bytes:
        with _damage_named(self.file(name)):
            return self.file(name).read_bytes()

    def file(self, name: str) -> Path:
        return self.path / name


class SingleFile(Source):
    """A file that is no archive, such as annotations in JSON."""

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
        name: Its path there.
        place: Its place among the files of all sources, in the order in which reading them is fast.
    """

    source: Source
    name: str
    place: int

    def read(self) -> bytes:
        """Its content."""
        return self.source.read(self.name)

    @property
    def file(self) -> Path | None:
        """Where it lies on the disk, None inside an archive."""
        return self.source.file(self.name)

    def __str__(self) -> str:
        return str(self.file or f'{self.name} in {self.source.path}')


class Sources:
    """All that a user has given to make a dataset from.

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
        """The files whose path ends like this.

        Args:
            ending: A regular expression for whole names at the end of a path, with a group for what identifies a
                file: ``r'val2017/(\\d+)\\.jpg'``.

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
                raise TPAError(f'Give only one of {found[identity]} and {member}: both would be {identity}.')
            found[identity] = member
        return found

    def one(self, ending: str) -> Member | None:
        """The only file whose path ends like this, None where there is none."""
        found = list(self.files(f'({ending})').values())
        return found[0] if found else None


def _open(path: Path) -> Source:
    """Recognizes a source by its content: names change on the way through browsers."""
    if path.is_dir():
        return Folder(path)
    if not path.is_file():
        raise TPAError(f'There is no file or folder {path}: correct --source.')
    with _damage_named(path), path.open('rb') as file:
        head = file.read(512).lstrip()
    if head.startswith(b'PK'):
        return Zip(path)
    if head.startswith((b'{', b'[')):
        return SingleFile(path)
    if head.startswith(b'<'):
        raise TPAError(f'{path} is a web page and no archive: log in at the site and download the archive again.')
    return Tar(path)


def _checked(source: Source) -> Iterator[str]:
    """The names of a source, without what a Mac adds to archives. A name that leads out of the archive is refused."""
    for name in source.names():
        path = PurePosixPath(name)
        if path.is_absolute() or '..' in path.parts:
            raise TPAError(
                f'{source.path} holds a file named {name}, which leads out of the archive: '
                'it is not what the site ships, so do not use it.'
            )
        if not path.name.startswith('._') and '__MACOSX' not in path.parts:
            yield name


@contextmanager
def _damage_named(path: Path, name: str | None = None) -> Iterator[None]:
    """Turns what readers raise into a sentence."""
    try:
        yield
    except OSError as error:
        raise TPAError(f'{path} cannot be read ({error.strerror or error}): correct that and run again.') from error
    except _DAMAGE as error:
        place = f'{name} in {path}' if name else str(path)
        # tarfile lists on lines of their own what each of its decoders has to say.
        reason = re.split(r':|\n', str(error))[0] or type(error).__name__
        raise TPAError(
            f'{place} cannot be read ({reason}): the archive is truncated, damaged or none; download it again.'
        ) from error
