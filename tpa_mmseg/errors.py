"""The one exception that users are meant to read."""

from __future__ import annotations


class TPAError(RuntimeError):
    """Something a user can mend: one sentence that names the culprit and says what to do.

    The tools print it without a traceback and exit with an error code.
    """


def user_message(error: BaseException) -> str:
    """What to tell a user about an error; a data loader's worker wraps the sentence into its traceback."""
    text = str(error).strip()
    if isinstance(error, TPAError):
        return text.rsplit('TPAError: ', 1)[-1].strip()
    return f'{type(error).__name__}: {text}'
