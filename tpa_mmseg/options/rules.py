"""What a value may be beyond its type, as a part of its annotation: ``alpha: Annotated[float, Range(0, 1)]``.

Needs nothing but Python, so that the method's own dataclasses can use it. pydantic reads the same annotations.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from ..errors import TPAError


class Rule:
    """A condition on a value."""

    def allows(self, value: Any) -> bool:
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def _checked(self, value: Any) -> Any:
        if not self.allows(value):
            raise ValueError(str(self))
        return value


@dataclass(frozen=True)
class Range(Rule):
    """Numbers from ``low`` to ``high``. Args: above: Whether ``low`` itself is not allowed."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False

    def allows(self, value: Any) -> bool:
        # Not infinity, not NaN, and no integer that is too large for a float.
        if not -sys.float_info.max <= value <= sys.float_info.max:
            return False
        return (self.low < value if self.above else self.low <= value) and value <= self.high

    def __str__(self) -> str:
        if self.high == math.inf:
            return f'greater than {self.low:g}' if self.above else f'of at least {self.low:g}'
        return (
            f'greater than {self.low:g} and at most {self.high:g}'
            if self.above
            else f'between {self.low:g} and {self.high:g}'
        )


@dataclass(frozen=True)
class Choice(Rule):
    """One of several values. Args: values: The values, or the name of the attribute of the class that has them."""

    values: Collection[Any] | str

    def __post_init__(self) -> None:
        if not isinstance(self.values, str):  # hashable, as pydantic's adapters are kept by annotation
            object.__setattr__(self, 'values', tuple(self.values))

    def of(self, owner: type) -> Choice:
        """Returns the choice with the values that a class has."""
        return replace(self, values=getattr(owner, self.values)) if isinstance(self.values, str) else self

    def allows(self, value: Any) -> bool:
        return value in self.values

    def __str__(self) -> str:
        return f'one of {", ".join(map(repr, self.values))}'


Positive = Annotated[float, Range(0, above=True)]
NotNegative = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 1)]
AtLeastOne = Annotated[int, Range(1)]


def one_of(name: str, value: object, allowed: Sequence) -> object:
    """Returns the value of an option if it is one of the allowed ones. Raises TPAError otherwise."""
    if value not in allowed:
        raise TPAError(f'{name} must be one of {", ".join(map(str, allowed))}, not {value!r}.')
    return value
