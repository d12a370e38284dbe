"""The one exception that users are meant to read."""

from __future__ import annotations


class TPAError(RuntimeError):
    """Something a user can mend: one sentence that names the culprit and says what to do.

    The tools print it without a traceback and exit with an error code.
    """
