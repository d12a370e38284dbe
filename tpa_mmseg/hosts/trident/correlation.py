"""SAM correlation: patches are mixed by the attention and the similar values of SAM's last block."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from ...sam.encoder import SAMFeatures

# Thresholds above the first are lowered to it; without refine_neg_cos those below zero are raised to the second.
_HIGHEST = 0.9
_INSTEAD_OF_NEGATIVE = 0.6


def correlate(features: SAMFeatures, canvas: Tensor, cos_fac: float, refine_neg_cos: bool) -> Tensor:
    """Mixes a map, resized to SAM's grid, by the attention and the values of SAM's last block.

    Args:
        features: SAM's features of the image.
        canvas: (D, h, w) map of the image.
        cos_fac, refine_neg_cos: See :func:`mix`.

    Returns:
        (D, gh, gw) on the patches of SAM that are not padding.
    """
    height, width = features.grid
    attention = features.attention

    def weights(top: int, bottom: int) -> Tensor:
        # Weights of the padding are dropped; rows are divided by their sum afterward.
        return attention.weights(top, bottom, width)[..., :height, :width]

    canvas = F.interpolate(canvas[None].float(), (height, width), mode='bilinear')[0]
    values = attention.values[:, :height, :width]
    return mix(canvas, values, weights, attention.bands(height), cos_fac, refine_neg_cos)


def mix(
    canvas: Tensor,
    values: Tensor,
    weights: Callable[[int, int], Tensor],
    bands: Iterable[tuple[int, int]],
    cos_fac: float,
    refine_neg_cos: bool,
) -> Tensor:
    """``W canvas`` with ``W(m, n) = sum_h A_h(m, n) [cos(V_h(m), V_h(n)) > t(m)]``, its rows divided by their sum.

    W is computed for a band of rows at a time. Its threshold is hard, so everything is computed in float32.

    Args:
        canvas: (D, gh, gw) map.
        values: (heads, gh, gw, d) values V.
        weights: Rows ``top`` to ``bottom`` of the attention A: (heads, bottom - top, gw, gh, gw).
        bands: The bands of rows, as (top, bottom) pairs.
        cos_fac: ``t(m)`` is this factor times the mean cosine of patch m with all patches in all heads, at most 0.9.
        refine_neg_cos: Keep negative thresholds, instead of taking 0.6.

    Returns:
        (D, gh, gw).
    """
    with torch.autocast(canvas.device.type, enabled=False):
        unit = F.normalize(values.float(), dim=-1)
        every = unit.flatten(1, 2)
        # The mean of the cosines with all patches is the product with their mean.
        threshold = cos_fac * torch.einsum('hywd,hd->yw', unit, every.mean(1)) / len(unit)
        if not refine_neg_cos:
            threshold = threshold.masked_fill(threshold < 0, _INSTEAD_OF_NEGATIVE)
        threshold = threshold.clamp(max=_HIGHEST)
        tokens = canvas.float().flatten(1).T
        mixed = []
        for top, bottom in bands:
            cosines = unit[:, top:bottom].flatten(1, 2) @ every.mT
            apart = cosines <= threshold[top:bottom].flatten()[:, None]
            rows = weights(top, bottom).reshape(cosines.shape).masked_fill(apart, 0).sum(0)
            mixed.append((rows @ tokens).div_(rows.sum(1, keepdim=True)))
    return torch.cat(mixed).T.unflatten(1, canvas.shape[1:])
