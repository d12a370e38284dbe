"""Values as the source of a config, laid out as ruff leaves it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

WIDTH = 120


def assignment(name: str, value: Any, folder: Path) -> str:
    """The statement ``name = value``, on one line if it fits. Args: folder: that of the config, for paths."""
    return f'{name} = {_source(value, folder, 0, len(name) + 3)}'


def _source(value: Any, folder: Path, depth: int, taken: int) -> str:
    """A value as source. Args: depth: of indentation; taken: characters on its line that are not its own."""
    line = _one_line(value, folder)
    if not isinstance(value, Mapping) or taken + len(line) <= WIDTH:
        return line
    space = '    ' * (depth + 1)
    body = line.removeprefix('dict(').removesuffix(')')
    if len(space) + len(body) <= WIDTH:
        return f'dict(\n{space}{body}\n{"    " * depth})'
    parts = [
        f'{space}{key}={_source(item, folder, depth + 1, len(space) + len(key) + 2)},\n' for key, item in value.items()
    ]
    return f'dict(\n{"".join(parts)}{"    " * depth})'


def _one_line(value: Any, folder: Path) -> str:
    if isinstance(value, Mapping):
        return f'dict({", ".join(f"{key}={_one_line(item, folder)}" for key, item in value.items())})'
    if isinstance(value, tuple) and all(isinstance(item, int | float) for item in value):
        return repr(value)
    if isinstance(value, tuple):
        return f'[{", ".join(_one_line(item, folder) for item in value)}]'
    if isinstance(value, str) and value.startswith('_base_.'):
        return value
    if isinstance(value, str) and Path(value).is_absolute():
        return repr(f'{{{{ fileDirname }}}}/{Path(os.path.relpath(value, folder)).as_posix()}')
    return repr(value)
