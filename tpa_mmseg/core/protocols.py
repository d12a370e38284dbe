"""What a sweep over an image needs of scores, so that scores can ask for a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor

from .decision import DecisionRule


class Scores(Protocol):
    """A :class:`~tpa_mmseg.core.ScoreMap`."""

    num_classes: int
    size: tuple[int, int]
    device: torch.device
    channels: int
    rule: DecisionRule
    source: Any

    def log_and_mass(self, top: int, bottom: int, with_mass: bool) -> tuple[Tensor, Tensor | None]: ...

    def parts(self) -> Iterator[tuple[int, Scores]]: ...

    def ranges(self) -> Iterator[tuple[int, int]]: ...

    def release(self) -> None: ...


class Added(Protocol):
    """Scores that are a host's with a lookup added: :class:`~tpa_mmseg.core.FusedScores`."""

    rule: DecisionRule
    lookup: Any
    fusion: Any
    second: Any
    adds_nothing: bool

    def add_to(self, log: Tensor, top: int, first: int) -> None:
        """Adds to a band of the host's log-probabilities in place.

        Args:
            log: (C', rows, W) of the classes from ``first`` on.
            top: The band's first row.
            first: The first class.
        """
