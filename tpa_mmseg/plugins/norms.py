"""LayerNorms of a visual tower, adapted on copies: the tower's own tensors never change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ..clip.tower import CLIPTower


class AdaptedNorms:
    """Copies of all LayerNorm weights and biases of a tower, and the Adam that changes them.

    This is the whole state of the adaptation: without it everything is forgotten, including the optimizer's moments and
    its number of steps.

    Args:
        tower: The tower.
        lr: Learning rate of Adam.
    """

    def __init__(self, tower: CLIPTower, lr: float) -> None:
        self._places = {
            f'{path}.{name}': (module, name)
            for path, module in tower.visual.named_modules()
            if isinstance(module, nn.LayerNorm)
            for name, _ in module.named_parameters(recurse=False)
        }
        with torch.inference_mode(False):
            self.copies = {
                place: nn.Parameter(getattr(module, name).detach().clone())
                for place, (module, name) in self._places.items()
            }
        self.optimizer = torch.optim.Adam(self.copies.values(), lr=lr)

    def parameters(self) -> list[Tensor]:
        return list(self.copies.values())

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Returns a context in which the tower runs with the copies. Its own tensors are restored in any case."""
        own = {place: getattr(module, name) for place, (module, name) in self._places.items()}
        try:
            self._put(self.copies)
            yield
        finally:
            self._put(own)

    def _put(self, tensors: dict[str, Tensor]) -> None:
        for place, (module, name) in self._places.items():
            setattr(module, name, tensors[place])
