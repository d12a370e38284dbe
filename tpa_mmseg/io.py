"""Small things that several packages need."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .errors import TPAError

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR, errno.EEXIST}
# Asked for once: the only way is to set it, which other threads would notice.
_UMASK = os.umask(0)
os.umask(_UMASK)


@contextmanager
def atomic_write(path: str | os.PathLike, mode: str = 'wb') -> Iterator[IO]:
    """Opens a file that appears under its name only once it is complete and on the disk.

    Whatever goes wrong before that, a kill included, the old file (or none) stays. Raises TPAError where the disk is
    full or the place is not writable.
    """
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        encoding = None if 'b' in mode else 'utf-8'
        with tempfile.NamedTemporaryFile(
            mode, encoding=encoding, dir=path.parent, prefix=f'.{path.name}.', suffix='.tmp', delete=False
        ) as file:
            temporary = Path(file.name)
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes the file private; a result is shared like any other file the user writes.
        temporary.chmod(0o666 & ~_UMASK)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise TPAError(f'No space left while writing {path}: free some space and run again.') from error
        if error.errno in _NOT_WRITABLE:
            raise TPAError(f'{path} cannot be written ({error.strerror}): choose another place.') from error
        raise
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
