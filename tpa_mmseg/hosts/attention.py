"""The hosts' replacements of attention in CLIP's last block: small pure functions of its queries, keys and values.

Every function mixes values, so the attention matrix itself never has to exist. Shapes: ``q``, ``k``, ``v`` are
(B, heads, T, d) with the class token first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ..core.tables import kept_per_shape, to_device
from ..layers.attention import attend


def query_key(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None, scale: float | None = None) -> Tensor:
    """CLIP's own attention."""
    return attend(q, k, v, bias, scale)


def query_query(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None, scale: float | None = None) -> Tensor:
    """ClearCLIP: queries attend to queries."""
    return attend(q, q, v, bias, scale)


def key_key(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None, scale: float | None = None) -> Tensor:
    """NACLIP: keys attend to keys, with the Gaussian prior as the bias."""
    return attend(k, k, v, bias, scale)


def correlative(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None, scale: float | None = None) -> Tensor:
    """SCLIP: the sum (not the mean) of query-query and key-key attention, so its rows sum to two."""
    return attend(q, q, v, bias, scale) + attend(k, k, v, bias, scale)


def identity(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None, scale: float | None = None) -> Tensor:
    """MaskCLIP: every token keeps its own value."""
    return v


def neighbors_only(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, scale: float | None = None) -> Tensor:
    """NACLIP's ablation without content: the Gaussian prior, scaled to the mean size of an image's scores.

    ``softmax(c * bias) v`` with ``c`` the mean over heads and token pairs of ``scale * |q_i| |k_j|``.
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    # The mean over pairs of a product is the product of the means.
    size = (q.norm(dim=-1).mean(-1) * k.norm(dim=-1).mean(-1)).mean(-1) * scale
    return (size[:, None, None, None] * bias.to(q.dtype)).softmax(-1) @ v


@kept_per_shape(4)
def gaussian_prior(grid: tuple[int, int], std: float, device: str = 'cpu') -> Tensor:
    """NACLIP's neighborhood: a Gaussian of the distance between two patches, one on the diagonal.

    Args:
        grid: Height and width of the patch grid.
        std: Standard deviation in patches.
        device: Device of the result.

    Returns:
        (1 + h w, 1 + h w) float32 tensor, zero in the row and the column of the class token.
    """
    down, across = (
        to_device(torch.exp(-(torch.arange(side)[:, None] - torch.arange(side)).square() / (2 * std**2)), device)
        for side in grid
    )
    tokens = 1 + grid[0] * grid[1]
    prior = torch.zeros(tokens, tokens, device=device)
    prior[1:, 1:] = torch.einsum('ij,kl->ikjl', down, across).reshape(tokens - 1, tokens - 1)
    return prior


class Strategy(NamedTuple):
    """A way to mix values in the last block."""

    mix: Callable[..., Tensor]  #: ``mix(q, k, v, bias, scale)``
    reads: str = 'qkv'  #: the ones of queries, keys and values that it reads; the others may be None
    gaussian: bool = False  #: whether its bias is the Gaussian prior


#: Name in a config -> strategy.
STRATEGIES = {
    'vanilla': Strategy(query_key),
    'qq': Strategy(query_query, 'qv'),
    'kk': Strategy(key_key, 'kv'),
    'csa': Strategy(correlative),
    'identity': Strategy(identity, 'v'),
    'naclip': Strategy(key_key, 'kv', gaussian=True),
    'nonly': Strategy(neighbors_only, gaussian=True),
}
