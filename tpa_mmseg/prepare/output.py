"""The folder a dataset is written to, with a journal of what was written.

The journal is what makes an interrupted preparation go on where it stopped, and what keeps it from overwriting files
that it did not write.
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

    A file counts as done when the journal has it with the same recipe and it has the size it was written with. Any
    other file in the way must be equal to what would be written, or the preparation stops.

    Args:
        folder: Where the dataset goes. It is made when the first file is written.
    """

    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise TPAError(f'{self.folder} is not a folder: choose another --out.')
        self._journal: dict[str, tuple[int, str]] = {}
        self._file: IO[str] | None = None
        journal = self.folder / JOURNAL
        text = journal.read_text(encoding='utf-8') if journal.is_file() else ''
        # A line that a killed run has cut short says nothing. Its file is compared instead.
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
        """Whether a file is done."""
        return self._wrote(target) and self._journal[target][1] == recipe

    def write(self, target: str, content: bytes) -> None:
        """Writes a file, all of it or nothing."""
        path = self.folder / target
        if self._wrote(target) or not os.path.lexists(path):
            with atomic_write(path) as file:
                file.write(content)
        elif not path.is_file() or path.read_bytes() != content:
            raise TPAError(f'{path} is there and was not written by this tool: move it away, or choose another --out.')

    def link(self, target: str, file: Path) -> None:
        """Makes a link to a file instead of a copy."""
        path = self.folder / target
        if not os.path.lexists(path):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(file.resolve())
            except OSError as error:
                raise TPAError(f'{path} cannot be made a link ({error.strerror}): run without --link.') from error
        elif not path.is_file() or not path.samefile(file):
            raise TPAError(f'{path} is there and is no link to {file}: move it away, or choose another --out.')

    def record(self, target: str, recipe: str) -> None:
        """Enters a file into the journal once it is complete."""
        if self._file is None:
            self._file = (self.folder / JOURNAL).open('a', encoding='utf-8')
            if self._torn:
                self._file.write('\n')
        size = (self.folder / target).stat().st_size
        self._journal[target] = size, recipe
        self._file.write(f'{target}\t{size}\t{recipe}\n')
        self._file.flush()

    def sweep(self, targets: Iterable[str]) -> None:
        """Removes the unfinished files that a killed run has left next to these."""
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
        """Whether a file is there as this tool has written it, by this recipe or another one."""
        path = self.folder / target
        return target in self._journal and path.is_file() and path.stat().st_size == self._journal[target][0]
