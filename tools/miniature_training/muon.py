"""Muon: momentum whose matrices are made orthogonal, which small transformers learn from in fewer steps.

PyTorch's own iterates in bfloat16, which some processors cannot multiply; this one stays in float32.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class Muon(torch.optim.Optimizer):
    """Momentum with orthogonal steps, as long as AdamW's would be, so that both take the same learning rate.

    Args:
        parameters: Matrices.
        lr: Learning rate.
        weight_decay: Share, times the learning rate, that a step takes off each weight.
        momentum: Share of the last step's direction that stays.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0, momentum: float = 0.95
    ) -> None:
        super().__init__(parameters, {'lr': lr, 'weight_decay': weight_decay, 'momentum': momentum})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for weight in group['params']:
                state = self.state[weight]
                if 'momentum' not in state:
                    state['momentum'] = torch.zeros_like(weight)
                state['momentum'].lerp_(weight.grad, 1 - group['momentum'])
                direction = orthogonal(weight.grad.lerp(state['momentum'], group['momentum']))
                length = 0.2 * max(weight.shape) ** 0.5
                weight.mul_(1 - group['lr'] * group['weight_decay']).add_(direction, alpha=-group['lr'] * length)


def orthogonal(matrix: Tensor, rounds: int = 5) -> Tensor:
    """A matrix with the same directions and all singular values near 1 (a Newton-Schulz iteration of fifth order)."""
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    wide = wide / wide.norm().clamp_min(1e-7)
    for _ in range(rounds):
        square = wide @ wide.T
        wide = 3.4445 * wide + (-4.7750 * square + 2.0315 * square @ square) @ wide
    return wide if matrix.shape[0] <= matrix.shape[1] else wide.T
