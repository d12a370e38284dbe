"""The options of a class: its constructor's arguments, and those that it passes on to the constructors above it."""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, get_args, get_origin

from ..errors import TPAError
from .rules import Choice
from .stated import OPENMMLAB, STATED


@dataclass
class Option:
    """One option of a class.

    Args:
        annotations: Those of all constructors that the value passes through; it has to fit every one of them.
        default: Its default, ``inspect.Parameter.empty`` without one.
        module: Where the constructor is that takes it.
    """

    annotations: list[Any] = field(default_factory=list)
    default: Any = inspect.Parameter.empty
    module: str = ''

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


@dataclass
class Options:
    """All options of a class. Args: known: By name; open: Whether it takes others too, which nobody can know."""

    known: dict[str, Option] = field(default_factory=dict)
    open: bool = False


@lru_cache(maxsize=512)
def options_of_class(kind: Callable) -> Options:
    """Returns the options of a class or function."""
    found = Options()
    for maker in _makers(kind):
        parameters = list(inspect.signature(maker).parameters.values())
        hints = _hints(maker)
        for each in parameters[1:] if isinstance(kind, type) else parameters:
            if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY):
                continue
            option = found.known.setdefault(each.name, Option(default=each.default, module=maker.__module__))
            hint = hints.get(each.name, each.empty)
            if hint is not each.empty:
                option.annotations.append(_bound(hint, kind))
        rest = next((each.name for each in parameters if each.kind is each.VAR_KEYWORD), None)
        if rest is None:
            return found
        if not _goes_up(maker, rest):
            found.open = True
            return found
    # Nothing is left that could take an option, unless a constructor is not written in Python.
    found.open = isinstance(kind, type) and not found.known and not _goes_nowhere(kind)
    return found


def _goes_nowhere(kind: type) -> bool:
    return all('__init__' not in vars(cls) or cls is object or inspect.isfunction(cls.__init__) for cls in kind.__mro__)


def _makers(kind: Callable) -> list[Callable]:
    if not isinstance(kind, type):
        return [kind]
    return [vars(cls)['__init__'] for cls in kind.__mro__ if inspect.isfunction(vars(cls).get('__init__'))]


def _hints(maker: Callable) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(maker, include_extras=True)
    except Exception:  # names that only a type checker imports
        hints = {}
    return {**hints, **STATED} if maker.__module__.startswith(OPENMMLAB) else hints


def _bound(hint: Any, kind: Callable) -> Any:
    """Fills in the values of a Choice that each class states itself."""
    if get_origin(hint) is not Annotated:
        return hint
    base, *rules = get_args(hint)
    parts = (base, *(rule.of(kind) if isinstance(rule, Choice) else rule for rule in rules))
    return Annotated[parts]


def _goes_up(maker: Callable, name: str) -> bool:
    """Returns True if a constructor gives its ``**name`` to the constructor above it and to nothing else."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(maker)))
    except (OSError, TypeError, SyntaxError):
        return False
    calls = [
        ast.unparse(call.func)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and any(each.arg is None and ast.unparse(each.value) == name for each in call.keywords)
    ]
    return bool(calls) and all(call.startswith('super') and call.endswith('.__init__') for call in calls)


def unknown_option(where: str, key: str, known: Iterable[str], kind: str = '') -> TPAError:
    """Returns the error for an option that does not exist, with the nearest one that does.

    Args:
        where: Place of the options in the config, e.g. ``'model.host'``.
        key: The option that does not exist.
        known: Those that do.
        kind: Name of their class.
    """
    known = list(known)
    near = difflib.get_close_matches(key, known, n=1)
    hint = f'Did you mean {join(where, near[0])}?' if near else f'Options: {", ".join(known)}.'
    return TPAError(f'{join(where, key)} is not an option{f" of {kind}" if kind else ""}. {hint}')


def join(place: str, key: str) -> str:
    """Returns the full key of an option."""
    return f'{place}.{key}' if place else key
