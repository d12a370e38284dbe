"""Checks of options that users write in configs and on command lines."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import TPAError


def one_of(name: str, value: object, allowed: Sequence) -> object:
    """The value of an option, or a sentence that says which values it may have."""
    if value not in allowed:
        raise TPAError(f'{name} must be one of {", ".join(map(str, allowed))}, not {value!r}.')
    return value
