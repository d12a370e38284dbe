"""For type checkers: an optional value that is known to be there."""

from __future__ import annotations

from typing import TypeVar

_T = TypeVar('_T')


def given(value: _T | None) -> _T:
    """A value that cannot be None where this is called, e.g. because it was asked for when its object was made."""
    assert value is not None
    return value
