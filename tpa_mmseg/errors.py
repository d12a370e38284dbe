"""The exception that users are meant to read."""

from __future__ import annotations

import re


class TPAError(RuntimeError):
    """An error that the user can fix. The message names the cause and the remedy.

    The tools print it without a traceback and exit with an error code.
    """


def user_message(error: BaseException) -> str:
    """Returns the message of an error for a user, without the traceback that a data loader's worker wraps it into."""
    text = str(error).strip()
    if isinstance(error, TPAError):
        return re.split(r'tpa_mmseg[\w.]*\.\w+: ', text)[-1].strip()
    return f'{type(error).__name__}: {text}'
