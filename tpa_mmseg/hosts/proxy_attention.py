"""Proxy attention: the similarities of another encoder mix the values of CLIP's last block."""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from open_clip.transformer import ResidualAttentionBlock
from torch import Tensor

from .windows import as_map


def grid_values(
    block: ResidualAttentionBlock, tokens: Tensor, grid: tuple[int, int], target: tuple[int, int]
) -> Tensor:
    """Computes the values of a block's patches, bilinearly resized to another grid.

    Args:
        block: CLIP's last block.
        tokens: (B, 1 + gh gw, D) tokens that enter it, the class token first.
        grid: Height gh and width gw of CLIP's patch grid.
        target: Height h and width w of the proxy's.

    Returns:
        (B, D, h, w) float32 values, all heads side by side.
    """
    width = tokens.shape[-1]
    weight, bias = block.attn.in_proj_weight[2 * width :], block.attn.in_proj_bias[2 * width :]
    values = as_map(F.linear(block.ln_1(tokens[:, 1:]), weight, bias).float(), grid)
    return values if grid == target else F.interpolate(values, target, mode='bilinear')


def mean_cosine(proxy: Tensor) -> Tensor:
    """The mean cosine of all pairs of patches, for each window on its own: (B, P, h, w) -> (B,).

    The mean over pairs of unit vectors is the squared length of their mean, so pairs need not be computed.
    """
    return F.normalize(proxy.float(), dim=1).flatten(2).mean(2).square().sum(1)


def proxy_attention(values: Tensor, proxy: Tensor, threshold: Tensor, gamma: float) -> Tensor:
    """Mixes values with ``softmax(gamma (S - threshold))`` over the pairs whose cosine S reaches the threshold.

    All heads of CLIP share the weights. The threshold is hard, so everything is computed in float32, whatever the
    precision of the networks. A patch that is similar to none, not even to itself, keeps its own value.

    Args:
        values: (B, D, h, w) values on the proxy's grid.
        proxy: (B, P, h, w) features of the proxy.
        threshold: (B,) lowest cosine that counts, ``beta`` times the mean cosine.
        gamma: Inverse temperature.

    Returns:
        (B, h w, D) mixed values.
    """
    with torch.autocast(values.device.type, enabled=False):
        unit = F.normalize(proxy.float(), dim=1).flatten(2)
        values = values.float().flatten(2).transpose(1, 2)
        weights = unit.transpose(1, 2) @ unit
        apart = weights < threshold[:, None, None]
        # The largest cosine of a row is one, that of a patch with itself: its maximum need not be subtracted.
        weights.sub_(1).mul_(gamma).exp_().masked_fill_(apart, 0)
        total = weights.sum(2, keepdim=True)
        alone = total == 0
        # Never divided by zero, even if the result is not used: the gradients of a wrapper would become NaN.
        mixed = (weights @ values).div_(total.masked_fill(alone, 1))
    # To look is to wait for a GPU.
    if alone.device.type == 'cpu':
        if not alone.any():
            return mixed
        warnings.warn(
            'Some patches are not similar to any patch, because the features of the proxy are nearly the same '
            'everywhere. They keep their own values. Set a smaller beta to mix them.',
            stacklevel=2,
        )
    return torch.where(alone, values, mixed)
