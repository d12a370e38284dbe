"""Whether a value fits an annotation, by pydantic, and the annotation in words."""

from __future__ import annotations

import numbers
import os
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from .rules import Rule

_WORDS = {
    int: 'an integer',
    float: 'a number',
    numbers.Number: 'a number',
    bool: 'True or False',
    str: 'a text',
    dict: 'a dict',
    Mapping: 'a dict',
    os.PathLike: 'a path',
    None: 'None',
    type(None): 'None',
}
_PLURALS = {int: 'integers', float: 'numbers', numbers.Number: 'numbers', str: 'texts', dict: 'dicts', bool: 'booleans'}


def fits(value: Any, annotation: Any) -> bool:
    """Returns True if a value of a config may be given where a function has this annotation.

    Nothing is converted: '3' is not an integer and True is not a number. But a list may stand for a tuple and a tuple
    for a list, because command lines do not have both.
    """
    from pydantic import ValidationError

    check = _validator(annotation)
    if check is None:
        return True
    for form in (value, _with(tuple, value), _with(list, value)):
        try:
            check(form)
            return True
        except (ValidationError, TypeError):
            continue
    return False


@lru_cache(maxsize=1024)
def _validator(annotation: Any) -> Callable[[Any], Any] | None:
    """Returns pydantic's validator; None for an annotation that it cannot read."""
    from pydantic import ConfigDict, TypeAdapter

    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            rules = ConfigDict(arbitrary_types_allowed=True, strict=True, allow_inf_nan=False)
            return TypeAdapter(annotation, config=rules).validate_python
    except Exception:  # annotations of other packages are not all well-formed
        return None


def _with(kind: type, value: Any) -> Any:
    """Returns a value with all lists and tuples in it made one of them."""
    return kind(_with(kind, each) for each in value) if isinstance(value, (list, tuple)) else value


def describe(annotation: Any) -> str:
    """Returns an annotation in words, e.g. ``an integer of at least 1 or None``."""
    parts = list(dict.fromkeys(text for part in _members(annotation) for text in _alternatives(part)))
    if 'None' in parts:  # last, as in `or None`
        parts = [*(part for part in parts if part != 'None'), 'None']
    return parts[0] if len(parts) == 1 else f'{", ".join(parts[:-1])} or {parts[-1]}'


def _members(annotation: Any) -> Sequence[Any]:
    """Returns the parts of a union, those of unions inside it too."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return (annotation,)
    return [member for part in get_args(annotation) for member in _members(part)]


def _alternatives(annotation: Any) -> list[str]:
    """Returns the values of a Literal, or the one description of anything else."""
    return list(map(repr, get_args(annotation))) if get_origin(annotation) is Literal else [_describe(annotation)]


def _describe(annotation: Any) -> str:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        rules = [str(each) for each in args[1:] if isinstance(each, Rule)]
        # A choice says all by itself.
        base = [] if any(text.startswith('one of') for text in rules) else [_describe(args[0])]
        return ' '.join([*base, *rules])
    if isinstance(origin, type) and issubclass(origin, Sequence):
        items = [each for each in args if each is not Ellipsis]
        one = items[0] if items and all(each == items[0] for each in items) else Any
        count = f'{len(items)} ' if origin is tuple and items and Ellipsis not in args else ''
        return f'a list of {count}{_plural(one)}'
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return 'a dict'
    if annotation in (list, tuple, Sequence):
        return 'a list'
    name = getattr(annotation, '__name__', str(annotation))
    return _WORDS.get(annotation) or f'{"an" if name[0] in "AEIOU" else "a"} {name}'


def _plural(annotation: Any) -> str:
    base = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    rules = get_args(annotation)[1:] if base is not annotation else ()
    return ' '.join([_PLURALS.get(base, 'values'), *(str(rule) for rule in rules if isinstance(rule, Rule))])
