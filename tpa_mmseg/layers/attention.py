"""Attention without a matrix of all pairs of tokens."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def attend(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None, scale: float | None = None) -> Tensor:
    """``softmax(scale * q k^T + bias) v``: (B, heads, T, d).

    Args:
        q, k, v: Queries, keys and values.
        bias: Added to the scores after their scale, broadcastable to (B, heads, T, T); rounded to the type of ``q``.
        scale: Of the scores. Default: ``1 / sqrt(d)``.
    """
    bias = None if bias is None else bias.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale)
