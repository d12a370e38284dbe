"""The output folder of a dataset, with a journal of the files that were written.

Thanks to the journal, an interrupted preparation resumes where it stopped and never overwrites files of the user.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from ..errors import TPAError
from ..io import atomic_write

JOURNAL = '.prepared.tsv'


class Output:
    """A folder and its journal.

    A file is done if the journal lists it with the same recipe and its size has not changed. Any other existing file
    must be equal to the one that would be written, otherwise the preparation stops.

    Args:
        folder: Folder of the dataset, created with the first file.
    """

    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise TPAError(f'{self.folder} is not a folder. Choose another --out.')
        self._journal: dict[str, tuple[int, str]] = {}
        self._file: IO[str] | None = None
        journal = self.folder / JOURNAL
        text = journal.read_text(encoding='utf-8') if journal.is_file() else ''
        # The last line of a killed run may be truncated. Its file is compared instead.
        self._torn = bool(text) and not text.endswith('\n')
        for line in text.splitlines()[: -1 if self._torn else None]:
            target, size, recipe = (*line.split('\t'), '', '')[:3]
            if size.isdigit() and recipe:
                self._journal[target] = int(size), recipe

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def has(self, target: str, recipe: str) -> bool:
        """Returns whether a file is done."""
        return self._wrote(target) and self._journal[target][1] == recipe

    def write(self, target: str, content: bytes) -> None:
        """Writes a file atomically."""
        path = self.folder / target
        if self._wrote(target) or not os.path.lexists(path):
            with atomic_write(path) as file:
                file.write(content)
        elif not path.is_file() or path.read_bytes() != content:
            raise TPAError(f'{path} exists and was not written by this tool. Move it away, or choose another --out.')

    def symlink(self, target: str, file: Path) -> None:
        """Creates a symlink to a file instead of a copy."""
        path = self.folder / target
        if not os.path.lexists(path):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(file.resolve())
            except OSError as error:
                raise TPAError(f'Cannot symlink {path} ({error.strerror}). Rerun without --symlink.') from error
        elif not path.is_file() or not path.samefile(file):
            raise TPAError(f'{path} exists and is not a symlink to {file}. Move it away, or choose another --out.')

    def record(self, target: str, recipe: str) -> None:
        """Adds a complete file to the journal."""
        if self._file is None:
            self._file = (self.folder / JOURNAL).open('a', encoding='utf-8')
            if self._torn:
                self._file.write('\n')
        size = (self.folder / target).stat().st_size
        self._journal[target] = size, recipe
        self._file.write(f'{target}\t{size}\t{recipe}\n')
        self._file.flush()

    def sweep(self, targets: Iterable[str]) -> None:
        """Removes unfinished files that a killed run left beside these."""
        names: dict[Path, set[str]] = {}
        for target in targets:
            path = self.folder / target
            names.setdefault(path.parent, set()).add(path.name)
        for folder, ours in names.items():
            for leftover in folder.glob('.*.tmp') if folder.is_dir() else ():
                # atomic_write names them .<name>.<random>.tmp
                if leftover.name[1:].rsplit('.', 2)[0] in ours:
                    leftover.unlink(missing_ok=True)

    def _wrote(self, target: str) -> bool:
        """Returns whether a file is as this tool wrote it, by this recipe or another one."""
        path = self.folder / target
        return target in self._journal and path.is_file() and path.stat().st_size == self._journal[target][0]
