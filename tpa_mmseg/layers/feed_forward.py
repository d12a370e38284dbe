"""The feed-forward half of a frozen transformer block, with a small part of its wide hidden layer at a time."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

# On a CPU: tokens that go through the hidden layer together, enough for matrix products at full speed, and tokens that
# are activated together, few enough to stay in the cache.
_TOKENS = 256
_ACTIVATED = 64
Layer = Callable[[Tensor], Tensor]


def feed_forward(tokens: Tensor, norm: Layer, widen: Layer, activation: Layer, narrow: Layer) -> Tensor:
    """``narrow(activation(widen(norm(tokens))))``: (..., D) -> (..., D).

    On a CPU the hidden layer exists for some tokens at a time, and the activation overwrites its input. This is not
    faster, but it halves the memory that a vision transformer needs beyond its weights. If gradients are enabled,
    nothing is overwritten.
    """
    if torch.is_grad_enabled() or tokens.device.type != 'cpu':
        return narrow(activation(widen(norm(tokens))))
    parts = tokens.flatten(0, -2).split(_TOKENS)
    out = [narrow(_activate_(widen(norm(part)), activation)) for part in parts]
    return (out[0] if len(out) == 1 else torch.cat(out)).view(tokens.shape)


def _activate_(hidden: Tensor, activation: Layer) -> Tensor:
    for rows in hidden.split(_ACTIVATED):
        rows.copy_(activation(rows))
    return hidden


def residual(tokens: Tensor, update: Tensor) -> Tensor:
    """``tokens + update``, in the memory of the update (which the caller gives up) unless the sum has a wider type.

    If gradients are enabled, nothing is overwritten.
    """
    if torch.is_grad_enabled() or update.dtype != torch.result_type(tokens, update):
        return tokens + update
    return update.add_(tokens)
