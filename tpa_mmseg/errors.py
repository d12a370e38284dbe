"""The exception that users are meant to read."""

from __future__ import annotations

import re

# Control characters but new lines and tabs, marks that reverse text, and bytes of file names that are not UTF-8.
_UNPRINTABLE = re.compile('[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]')


def printable(text: object) -> str:
    """Returns a text that cannot steer a terminal: names of files and classes may come from strangers."""
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], str(text))


class TPAError(RuntimeError):
    """An error that the user can fix. The message names the cause and the remedy.

    The tools print it without a traceback and exit with an error code.
    """

    def __str__(self) -> str:
        return printable(super().__str__())


def user_message(error: BaseException) -> str:
    """Returns the message of an error for a user, without the traceback that a data loader's worker wraps it into."""
    text = str(error).strip()
    if isinstance(error, TPAError):
        return re.split(r'tpa_mmseg[\w.]*\.\w+: ', text)[-1].strip()
    return f'{type(error).__name__}: {text}'
