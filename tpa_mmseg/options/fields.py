"""The rules in the annotations of a dataclass, checked without pydantic: the method itself must not need it."""

from __future__ import annotations

import types
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from .rules import Rule
from .values import describe


def check_fields(options: Any) -> None:
    """Raises ValueError for the first field of a dataclass that breaks a rule of its annotation."""
    for name, hint in _hints(type(options)).items():
        value = getattr(options, name)
        if not _follows(value, hint):
            raise ValueError(f'{name} must be {describe(hint)}, not {value!r}')


@lru_cache(maxsize=64)
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _follows(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Annotated:
        rules = [each for each in get_args(hint)[1:] if isinstance(each, Rule)]
        try:
            return all(rule.allows(value) for rule in rules)
        except TypeError:  # a text is not comparable with a number
            return False
    if origin is Literal:
        return value in get_args(hint)
    parts = get_args(hint) if origin in (Union, types.UnionType) else ()
    return (
        not parts
        or (value is None and type(None) in parts)
        or any(_follows(value, p) for p in parts if p is not type(None))
    )
