"""Alarms: checks of an image whose outcome is read once, when all of its work is under way."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..errors import TPAError


class Alarms:
    """What must not be true of an image.

    On a GPU a flag is computed in its turn and read by :meth:`check` after the image's last kernel: to read it at
    once would let the GPU run empty. On a CPU there is nothing to wait for, and an alarm is raised at once.
    """

    def __init__(self) -> None:
        self._pending: list[tuple[Tensor, str | Callable[[], str]]] = []

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, flag: Tensor, message: str | Callable[[], str]) -> None:
        """Adds a check.

        Args:
            flag: Bool scalar on the image's device.
            message: Of the TPAError if the flag is True, or what makes it.
        """
        self._pending.append((flag, message))
        if flag.device.type == 'cpu':
            self.check()

    def extend(self, other: Alarms) -> None:
        """Takes over the flags of another, which are then read here."""
        self._pending += other._pending
        other._pending = []

    def check(self) -> None:
        """Reads all flags in one copy. Raises TPAError with the message of the first that is True."""
        pending, self._pending = self._pending, []
        if pending:
            for raised, (_, message) in zip(torch.stack([flag for flag, _ in pending]).tolist(), pending, strict=True):
                if raised:
                    raise TPAError(message if isinstance(message, str) else message())
