"""Checks of options that users write in configs and on command lines."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from .errors import TPAError

T = TypeVar('T')


def one_of(name: str, value: object, allowed: Sequence) -> object:
    """Returns the value of an option if it is one of the allowed ones. Raises TPAError otherwise."""
    if value not in allowed:
        raise TPAError(f'{name} must be one of {", ".join(map(str, allowed))}, not {value!r}.')
    return value


def options_of(cls: type[T], given: Mapping | None, where: str) -> T:
    """Builds a dataclass of options from a config. A wrong key or value raises TPAError.

    Args:
        cls: The dataclass.
        given: Its fields; None for the defaults.
        where: The options' place in a config, e.g. ``'model.fusion'``.
    """
    given = dict(given or {})
    known = [field.name for field in dataclasses.fields(cls)]
    for key in given:
        if key not in known:
            raise unknown_option(where, key, known)
    try:
        return cls(**given)
    except (TypeError, ValueError) as error:
        raise TPAError(f'{where} is wrong: {error}.') from error


def unknown_option(where: str, key: str, known: Iterable[str]) -> TPAError:
    """Returns the error for an option that does not exist, with the nearest one that does."""
    known = list(known)
    near = difflib.get_close_matches(key, known, n=1)
    hint = f'Did you mean {near[0]!r}?' if near else f'Options: {", ".join(known)}.'
    return TPAError(f'{where} has no option {key!r}. {hint}')
