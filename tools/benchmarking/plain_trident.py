"""Trident as it is usually written: attention and cosines of SAM for all heads and pairs of patches."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tpa_mmseg.hosts import Trident
from tpa_mmseg.hosts.windows import as_map
from tpa_mmseg.sam.attention import GlobalAttention

from .plain_networks import proxy_features, proxy_mixed, written_out


def trident_scores(host: Trident, image: Tensor, size: tuple[int, int]) -> Tensor:
    """(3, h, w) image and its original size -> (1, Q, gh, gw) cosines with the text."""
    canvas = _splice(host, host.fit(image))
    weights = _correlation(host, image, size)
    mixed = weights.flatten(0, 1) @ F.interpolate(canvas[None], weights.shape[:2], mode='bilinear').flatten(2)[0].T
    features = as_map(host.tower.project(mixed)[None], tuple(weights.shape[:2]))
    return torch.einsum('behw,qe->bqhw', F.normalize(features, dim=1), host.text_features)


def _splice(host: Trident, image: Tensor) -> Tensor:
    """(D, h, w) output of CLIP's last attention, averaged over windows, all of which run together."""
    patch, sliding = host.tower.patch_size, host.sliding
    windows = torch.stack(sliding.cut(image))
    proxy = proxy_features(host, windows)
    maps = iter(as_map(proxy_mixed(host, windows, proxy), tuple(proxy.shape[-2:])))
    ratio = patch // host.proxy.patch
    canvas = torch.zeros(host.tower.blocks[-1].attn.embed_dim, *(ratio * side // patch for side in image.shape[-2:]))
    visits = torch.zeros_like(canvas)
    for y in sliding.spans(image.shape[1]):
        for x in sliding.spans(image.shape[2]):
            area = (..., *(slice(ratio * s.start // patch, ratio * s.stop // patch) for s in (y, x)))
            canvas[area] += next(maps)
            visits[area] += 1
    return canvas / visits


def _correlation(host: Trident, image: Tensor, size: tuple[int, int]) -> Tensor:
    """(gh, gw, gh gw) correlation of SAM's patches, whose last axis sums to one."""
    network = host.sam.network
    pixels = host.sam_image(image, None, size)
    frame = host.sam.model.frame(pixels.shape[:2])
    height, width = (side // host.sam.model.patch for side in frame)
    *blocks, last = network.blocks
    with written_out(network):
        tokens = network.patch_embed(host.sam.prepare(pixels, frame)) + network.pos_embed
        for block in blocks:
            tokens = block(tokens)
    attention = GlobalAttention.of(last.attn, last.norm1(tokens))
    weights = attention.weights(0, attention.grid[0])[:, :height, :width, :height, :width].flatten(3)
    unit = F.normalize(attention.values[:, :height, :width], dim=-1)
    cosines = torch.einsum('hywd,hnd->hywn', unit, unit.flatten(1, 2))
    threshold = (host.cos_fac * cosines.mean((0, 3))).clamp(max=0.9)
    weights = torch.where(cosines > threshold[..., None], weights, 0).mean(0)
    return weights / weights.sum(2, keepdim=True)
