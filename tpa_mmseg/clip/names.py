"""Class names: one parser for files, packaged lists, lists and strings.

The grammar is the same everywhere. A comma, a new line or another entry of a list starts the next class; a semicolon
separates the names (synonyms) of one class::

    'cat, sofa, tv; television'             # three classes, the last one with two names
    ['cat', 'sofa', 'tv; television']       # the same
    [['cat'], ['sofa'], ['tv', 'television']]  # the same; names in inner lists are taken as they are, commas included

A file has one class per line, and a comma in it is an error: the files of the original implementations have commas
between synonyms, so that either reading would surprise someone.
"""

from __future__ import annotations

import difflib
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import TPAError, printable

#: Packaged list, file, string or list, as :meth:`ClassNames.read` takes them.
Classes = str | os.PathLike | Sequence[str | Sequence[str]]

#: Name of the class for everything that is none of the others.
BACKGROUND = 'background'

# The lists that come with the package; sources.json there names the origin of each.
PACKAGED = Path(__file__).parents[1] / 'datasets' / 'class_names'

# Classes that a description spells out.
_DESCRIBED = 20


@dataclass(frozen=True)
class ClassNames:
    """The names of all classes. Every name is one text query.

    Args:
        names: For each class its names; the first one is its title, the others are synonyms.
    """

    names: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, source: Classes) -> ClassNames:
        """Reads class names by the grammar of this module.

        Args:
            source: The name of a packaged list, e.g. ``'voc21'``; a file, as a path object or as a string that ends in
                ``.txt`` or contains a slash; any other string; or a list with a string, or a list of names, per class.
        """
        if isinstance(source, os.PathLike) or (isinstance(source, str) and _is_file(source)):
            origin, classes = str(source), _read_file(_locate(source))
        elif isinstance(source, str):
            _refuse_misspelled_list(source)
            origin, classes = 'class_names', split_classes(source)
        else:
            origin, classes = 'class_names', []
            for entry in source:
                classes += (split_classes(entry) or ['']) if isinstance(entry, str) else [entry]
        if not classes:
            raise TPAError(f"No classes in {origin}: name some, e.g. ['cat', 'sofa', 'tv; television'].")
        names = tuple(_split_names(entry) if isinstance(entry, str) else _strip(entry) for entry in classes)
        if not all(names):
            raise TPAError(f'Class {names.index(())} in {origin} has no name: every class needs at least one.')
        found = cls(names)
        found._warn_of_shared_names(origin)
        return found

    @property
    def titles(self) -> list[str]:
        """The first name of each class."""
        return [synonyms[0] for synonyms in self.names]

    @property
    def queries(self) -> list[str]:
        """All names of all classes."""
        return [name for synonyms in self.names for name in synonyms]

    @property
    def query_to_class(self) -> list[int]:
        """Class of each query."""
        return [index for index, synonyms in enumerate(self.names) for _ in synonyms]

    @property
    def looks_like_background(self) -> bool:
        """Whether class 0 may be a background: it is called that, or has several names."""
        return len(self.names[0]) > 1 or self.names[0][0].lower() == BACKGROUND

    def split_background(self) -> tuple[ClassNames, bool]:
        """Returns the classes without a class 0 called ``'background'``, and whether there was one."""
        if self.names[0] == (BACKGROUND,) and len(self.names) > 1:
            return ClassNames(self.names[1:]), True
        return self, False

    def with_background(self, words: str | Sequence[str]) -> ClassNames:
        """Adds a background as class 0.

        Args:
            words: Its names, as a list or with commas or semicolons between them. Names of other classes are dropped.
        """
        words = _strip(re.split('[,;\n]', words) if isinstance(words, str) else words)
        taken = {name.lower() for name in self.queries}
        free = tuple(word for word in words if word.lower() not in taken)
        if not free:
            raise TPAError(
                f'All names of the background are classes ({", ".join(words)}): describe it by other words, '
                "e.g. background='wall, sky'."
            )
        return ClassNames((free, *self.names))

    def __str__(self) -> str:
        """Describes the classes to users, e.g. ``3 classes: cat / sofa / tv (= television)``."""
        shown = [
            title + (f' (= {", ".join(synonyms)})' if synonyms else '') for title, *synonyms in self.names[:_DESCRIBED]
        ]
        more = len(self.names) - len(shown)
        count = '1 class' if len(self.names) == 1 else f'{len(self.names)} classes'
        return printable(f'{count}: {" / ".join(shown)}' + (f' / ... ({more} more)' if more else ''))

    def _warn_of_shared_names(self, origin: str) -> None:
        classes: dict[str, set[int]] = {}
        for name, index in zip(self.queries, self.query_to_class, strict=True):
            classes.setdefault(name.lower(), set()).add(index)
        for name, shared in classes.items():
            if len(shared) > 1:
                first, *others = sorted(shared)
                warnings.warn(
                    f'{origin}: {name!r} is a name of classes {first} and {", ".join(map(str, others))}; '
                    f'if it fits best, class {first} wins the tie.',
                    stacklevel=3,
                )


def split_classes(text: str) -> list[str]:
    """Splits a string into classes, whose names may still be separated by semicolons. Blank entries are dropped."""
    return [entry.strip() for entry in re.split('[,\n]', text) if entry.strip()]


def packaged_lists() -> list[str]:
    """The names of the lists that come with the package."""
    return sorted(path.stem for path in PACKAGED.glob('*.txt'))


def _split_names(entry: str) -> tuple[str, ...]:
    return _strip(entry.split(';'))


def _strip(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in names if name.strip())


def _is_file(text: str) -> bool:
    if text in packaged_lists():
        return True
    return not re.search('[,;\n]', text) and (text.endswith('.txt') or '/' in text or os.sep in text)


def _locate(source: str | os.PathLike) -> Path:
    """The file of a packaged list, whose name means the same in every folder, or the file that a path names."""
    return PACKAGED / f'{source}.txt' if str(source) in packaged_lists() else Path(source)


def _refuse_misspelled_list(word: str) -> None:
    near = difflib.get_close_matches(word, packaged_lists(), n=3, cutoff=0.75)
    if near:
        raise TPAError(
            f'Unknown class list {word!r}. Did you mean {" or ".join(near)}? Choose from: '
            f'{", ".join(packaged_lists())}; or give a file, e.g. classes.txt; or classes, e.g. [{word!r}, ...].'
        )


def _read_file(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, 'strerror', None) or 'not a text file'
        raise TPAError(
            f'Cannot read class names from {path} ({reason}): give a file with one class per line, or one of '
            f'{", ".join(packaged_lists())}.'
        ) from error
    lines = text.rstrip().splitlines()
    for number, line in enumerate(lines, start=1):
        if ',' in line:
            raise TPAError(
                f'Comma in the class names {path}, line {number}: {line[:60]!r}. A line is one class: separate its '
                'synonyms by semicolons, and put every class on its own line.'
            )
    return lines
