"""Class names: one class per line of a file, its synonyms next to each other."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import TPAError

# The lists that come with the package; sources.json there says where each is from.
PACKAGED = Path(__file__).parents[1] / 'datasets' / 'class_names'


@dataclass(frozen=True)
class ClassNames:
    """The names of all classes. Every name is a text query of its own.

    Args:
        names: For each class its names, the first one being the class's own.
    """

    names: tuple[tuple[str, ...], ...]

    @property
    def queries(self) -> list[str]:
        return [name for synonyms in self.names for name in synonyms]

    @property
    def query_to_class(self) -> list[int]:
        return [index for index, synonyms in enumerate(self.names) for _ in synonyms]

    @property
    def looks_like_background(self) -> bool:
        """Whether class 0 may be a background: it says so, or many words stand for it."""
        return len(self.names[0]) > 1 or self.names[0][0].lower() == 'background'

    @classmethod
    def read(cls, source: str | os.PathLike | Sequence[str | Sequence[str]]) -> ClassNames:
        """Reads class names.

        Args:
            source: A file with one line per class, synonyms separated by commas or semicolons (blank lines at its end
                do not count); the name of a list that comes with the package, such as ``'voc21'``; or a list with a
                name, or a list of synonyms, per class.
        """
        if isinstance(source, (str, os.PathLike)):
            names = _read_file(_locate(source))
            origin = str(source)
        else:
            names = [[entry] if isinstance(entry, str) else list(entry) for entry in source]
            origin = 'class_names'
        names = [[name.strip() for name in synonyms if name.strip()] for synonyms in names]
        empty = [index for index, synonyms in enumerate(names) if not synonyms]
        if empty or not names:
            raise TPAError(f'{origin} gives no name for class {empty[0] if empty else 0}: every class needs one.')
        found = cls(tuple(map(tuple, names)))
        found._warn_of_shared_names(origin)
        return found

    def _warn_of_shared_names(self, origin: str) -> None:
        classes: dict[str, set[int]] = {}
        for name, index in zip(self.queries, self.query_to_class, strict=True):
            classes.setdefault(name.lower(), set()).add(index)
        for name, shared in classes.items():
            if len(shared) > 1:
                first, *others = sorted(shared)
                warnings.warn(
                    f'{origin}: {name!r} names classes {first} and {", ".join(map(str, others))}; '
                    f'where it fits best, class {first} wins the tie.',
                    stacklevel=2,
                )


def packaged_lists() -> list[str]:
    """The names of the lists that come with the package."""
    return sorted(path.stem for path in PACKAGED.glob('*.txt'))


def _locate(source: str | os.PathLike) -> Path:
    """The file of a packaged list, whose name means the same in every folder, or the file that a path names."""
    return PACKAGED / f'{source}.txt' if str(source) in packaged_lists() else Path(source)


def _read_file(path: Path) -> list[list[str]]:
    try:
        text = path.read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, 'strerror', None) or 'not a text file'
        raise TPAError(
            f'The class names {path} cannot be read ({reason}): give a file with one class per line, or one of '
            f'{", ".join(packaged_lists())}.'
        ) from error
    return [re.split('[,;]', line) for line in text.rstrip().splitlines()]
