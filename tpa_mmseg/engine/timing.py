"""StageTimer: how long the stages of a computation take, on a CPU or a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import torch

T = TypeVar('T')


class StageTimer:
    """Measures stages one by one; a GPU is waited for before and after each.

    Args:
        device: Where the stages run.

    Attributes:
        seconds: Stage -> seconds it took last.
    """

    def __init__(self, device: torch.device | str) -> None:
        self.seconds: dict[str, float] = {}
        self._wait = torch.cuda.synchronize if torch.device(device).type == 'cuda' else lambda: None

    def __call__(self, stage: str, run: Callable[[], T]) -> T:
        """Run a stage, note its time, and return its result."""
        self._wait()
        start = time.perf_counter()
        result = run()
        self._wait()
        self.seconds[stage] = time.perf_counter() - start
        return result
