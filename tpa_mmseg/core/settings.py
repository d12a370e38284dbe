"""Settings of the machine, not of the method: environment variables that change speed and memory, never labels."""

from __future__ import annotations

import os

from ..errors import TPAError


def positive_bytes(name: str, default: int) -> int:
    """A number of bytes from an environment variable. Raises TPAError if it is not a positive whole number."""
    text = os.environ.get(name)
    if text is None:
        return default
    if not text.isdecimal() or int(text) == 0:
        raise TPAError(f'{name} must be a positive number of bytes, not {text!r}: correct or unset it.')
    return int(text)
