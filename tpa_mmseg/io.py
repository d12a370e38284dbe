"""Files that appear under their name only when they are complete, and JSON from strangers."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .errors import TPAError

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR, errno.EEXIST}
# Read once: the only way is to set it, which other threads would notice.
_UMASK = os.umask(0)
os.umask(_UMASK)


@contextmanager
def atomic_write(path: str | os.PathLike, mode: str = 'wb') -> Iterator[IO]:
    """Opens a file that appears under its name only when it is complete and on disk.

    If anything goes wrong before that, a kill included, the old file (or none) stays. Raises TPAError if the disk is
    full or the path is not writable.
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
            raise TPAError(f'No space left while writing {path}. Free some space and rerun.') from error
        if error.errno in _NOT_WRITABLE:
            raise TPAError(f'Cannot write {path} ({error.strerror}). Choose another path.') from error
        raise
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def parse_json(text: str | bytes, keep: Callable[[dict], Any] = dict) -> Any:
    """Parses JSON from strangers.

    Args:
        text: The JSON.
        keep: Called with every object; returns what to keep of it.

    Raises:
        ValueError: It is not JSON, too deep, has a key twice, or NaN or infinity, which JSON does not have.
    """

    def build(pairs: list[tuple[str, Any]]) -> Any:
        item = dict(pairs)
        if len(item) < len(pairs):
            raise ValueError(f'a key occurs twice among {", ".join(item)[:80]}')
        return keep(item)

    def refuse(constant: str) -> None:
        raise ValueError(f'{constant} is not JSON')

    try:
        return json.loads(text, object_pairs_hook=build, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError('nested too deeply') from error
    except MemoryError as error:
        raise ValueError('not enough memory') from error


def write_json(path: str | os.PathLike, content: Any) -> None:
    """Writes readable JSON. Raises ValueError for NaN and infinity, which JSON does not have."""
    with atomic_write(path, 'w') as file:
        json.dump(content, file, indent=2, ensure_ascii=False, allow_nan=False)
        file.write('\n')


def write_png(path: str | os.PathLike, image: Any) -> None:
    """Writes a PNG. Args: image: Of Pillow, which is not imported here because the core must not need it."""
    with atomic_write(path) as file:
        image.save(file, format='PNG')
