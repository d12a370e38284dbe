"""The classes of a user: one string, a list, a file, with synonyms and a background."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from ..clip.names import ClassNames, packaged_lists
from ..errors import TPAError

#: ``'cat; dog; tv, television'``, ``['cat', 'dog', 'tv; television']``, a file, or the name of a packaged list.
Classes = str | os.PathLike | Sequence[str | Sequence[str]]

BACKGROUND = 'background'


def read_classes(classes: Classes) -> ClassNames:
    """Reads classes.

    Args:
        classes: A list with one entry per class, in which ``;`` or ``,`` separate synonyms; or one string, in which
            ``;`` or a new line separates classes and ``,`` synonyms; or a file or packaged list as
            :meth:`ClassNames.read` takes it.
    """
    if isinstance(classes, os.PathLike) or (isinstance(classes, str) and _names_a_list(classes)):
        return ClassNames.read(classes)
    if isinstance(classes, str):
        entries = [entry for entry in re.split('[;\n]', classes) if entry.strip()]
        return _read([entry.split(',') for entry in entries])
    return _read([re.split('[;,]', entry) if isinstance(entry, str) else entry for entry in classes])


def _read(names: list[Sequence[str]]) -> ClassNames:
    if not names:
        raise TPAError("There are no classes: give some, such as ['cat', 'sofa', 'wall'].")
    return ClassNames.read(names)


def _names_a_list(text: str) -> bool:
    return text in packaged_lists() or (text.endswith('.txt') and Path(text).is_file())


def split_background(names: ClassNames) -> tuple[ClassNames, bool]:
    """The classes without a class 0 that is called background, and whether there was one."""
    if names.names[0] == (BACKGROUND,) and len(names.names) > 1:
        return ClassNames(names.names[1:]), True
    return names, False


def with_background(names: ClassNames, words: Sequence[str]) -> ClassNames:
    """The classes with a background as class 0, described by those words that are no class of their own."""
    taken = {name.lower() for name in names.queries}
    free = tuple(word for word in words if word.lower() not in taken)
    if not free:
        raise TPAError(f'The background is described by classes only ({", ".join(words)}): give it other words.')
    return ClassNames((free, *names.names))
