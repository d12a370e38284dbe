"""Checks the options of a config against the signatures of the classes that they are for. Builds nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Protocol, TypeVar, get_args, get_origin

from ..errors import TPAError
from .signature import Option, join, options_of_class, unknown_option
from .values import _members, describe, fits

T = TypeVar('T')


class Kinds(Protocol):
    """Knows the classes behind the ``type`` of dicts in a config."""

    def find(self, part: Mapping, place: str) -> Callable | None:
        """Returns the class of a dict with a ``type``. Raises TPAError if there is none; None: leave it unchecked."""

    def extra(self, place: str) -> tuple[str, ...]:
        """Returns keys that others than the class read at a place."""

    def part(self, kind: Callable, key: str) -> Callable | None:
        """Returns what has the options of a dict without a ``type`` that a class takes; None: leave it unchecked."""

    def ours(self, module: str) -> bool:
        """Returns whether a module is one of this package, whose annotations say where a dict describes an object."""

    def complete(self, kind: Callable, place: str) -> bool:
        """Returns whether a class gets its arguments from the config alone, so that none may be missing."""


def options_of(cls: type[T], given: Mapping | None, where: str) -> T:
    """Builds a dataclass of options from a config. A wrong key or value raises TPAError.

    Args:
        cls: The dataclass.
        given: Its fields; None for the defaults.
        where: The options' place in a config, e.g. ``'model.fusion'``.
    """
    given = dict(given or {})
    for problem in problems(cls, given, where):
        raise TPAError(problem)
    return cls(**given)


def problems(kind: Callable, given: Mapping, place: str, kinds: Kinds | None = None) -> Iterator[str]:
    """Yields a sentence for every option that a class does not have, cannot take or misses.

    Args:
        kind: The class.
        given: Its options, as in a config.
        place: Where they are in the config, e.g. ``'model.host'``.
        kinds: What looks up the classes of dicts with a ``type``; without it they are not checked.
    """
    options, found = options_of_class(kind), False
    skipped = ('type', '_scope_', *(kinds.extra(place) if kinds else ()))
    for key, value in given.items():
        if key in skipped:
            continue
        if key in options.known:
            part = kinds.part(kind, key) if kinds and isinstance(value, Mapping) and 'type' not in value else None
            option = options.known[key]
            inner = kinds if kinds and (not kinds.ours(option.module) or _describes_object(option)) else None
            at = join(place, key)
            for text in problems(part, value, at) if part else _value_problems(value, option, at, inner):
                found = True
                yield text
        elif not options.open:
            found = True
            yield str(unknown_option(place, key, options.known, getattr(kind, '__name__', str(kind))))
    if kinds is None or kinds.complete(kind, place):
        for key, option in options.known.items():
            if option.required and key not in given:
                found = True
                need = describe(option.annotations[0]) if option.annotations else 'a value'
                yield f'{join(place, key)} is missing: {kind.__name__} needs {need}.'
    if not found and dataclasses.is_dataclass(kind):
        yield from _construction_problems(kind, given, place)


def _construction_problems(kind: type, given: Mapping, place: str) -> Iterator[str]:
    """What a dataclass says about options that do not go together."""
    try:
        kind(**given)
    except TPAError as error:
        yield str(error)
    except (TypeError, ValueError) as error:
        yield f'{place}.{error}.'


def _value_problems(value: Any, option: Option, place: str, kinds: Kinds | None) -> Iterator[str]:
    if _same(value, option.default):
        return
    if isinstance(value, Mapping):
        nested = next(filter(None, map(_options_class, option.annotations)), None)
        if 'type' in value and kinds is not None and nested is None:
            yield from typed_problems(value, option, place, kinds)
            return
        if nested is not None:
            yield from problems(nested, value, place, kinds)
            return
        if kinds is not None and any(map(_classes, option.annotations)) and 'type' not in value:
            yield f'{place}.type is missing: name {describe(_classes(option.annotations[0])[0])}.'
            return
    if isinstance(value, (list, tuple)) and kinds is not None and any(_typed(each) for each in value):
        for index, each in enumerate(value):
            if _typed(each):
                yield from typed_problems(each, Option(), f'{place}.{index}', kinds)
        return
    for annotation in option.annotations:
        if not fits(value, annotation):
            yield f'{place} must be {describe(annotation)}, not {_short(value)}.'
            return


def typed_problems(part: Mapping, option: Option, place: str, kinds: Kinds) -> Iterator[str]:
    """Yields what is wrong with a dict that has a ``type``. Args: option: What the class around it expects there."""
    try:
        kind = kinds.find(part, place)
    except TPAError as error:
        yield str(error)
        return
    if kind is None:
        return
    expected = [cls for annotation in option.annotations for cls in _classes(annotation)]
    if expected and isinstance(kind, type) and not issubclass(kind, tuple(expected)):
        yield f'{place}.type must be {describe(expected[0])}, not {kind.__name__}.'
        return
    yield from problems(kind, part, place, kinds)


def _describes_object(option: Option) -> bool:
    """Whether a dict there has the ``type`` of a class of MMSegmentation; some dicts are read by other libraries."""
    return any(_classes(annotation) or _options_class(annotation) for annotation in option.annotations)


def _typed(value: Any) -> bool:
    return isinstance(value, Mapping) and 'type' in value


def _options_class(annotation: Any) -> Callable | None:
    """Returns what has the options of a dict, where an annotation is ``Annotated[dict, class or function]``."""
    for part in _members(annotation):
        if get_origin(part) is Annotated and get_args(part)[0] is dict:
            return get_args(part)[1]
    return None


def _classes(annotation: Any) -> list[type]:
    """Returns the classes that an annotation names beside ``dict``: what a config can describe by its ``type``."""
    parts = _members(annotation)
    if dict not in parts:
        return []
    return [
        part
        for part in parts
        if isinstance(part, type)
        and part.__module__ not in ('builtins', 'os', 'pathlib', 'collections.abc')
        and not issubclass(part, Mapping)
    ]


def _same(value: Any, default: Any) -> bool:
    """Whether a value is the default: annotations of other packages often forget that None is allowed."""
    return value is default or (
        type(value) is type(default) and isinstance(value, (str, int, float)) and value == default
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f'{text[:57]}...'
