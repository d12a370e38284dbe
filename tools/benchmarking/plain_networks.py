"""The hosts' networks as they are usually written: modules as their libraries run them, every attention matrix whole.

The original implementations do the same: CLIP's blocks through ``nn.MultiheadAttention``, DINO and SAM with weights of
all heads x tokens x tokens, the changed last block with matrices of its own. What they compute more than once or for
nothing (keys that no one reads, copies for each head, SAM's last block behind its attention) is left out here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tpa_mmseg.clip.tower import CLIPTower, heads, merge_heads
from tpa_mmseg.hosts import GEM, ProxyCLIP, Trident
from tpa_mmseg.hosts.attention import gaussian_prior
from tpa_mmseg.hosts.clip_host import CLIPHost
from tpa_mmseg.hosts.last_block import LastBlockHost
from tpa_mmseg.hosts.proxy_attention import grid_values
from tpa_mmseg.hosts.windows import as_map


def window_scores(host: CLIPHost, window: Tensor) -> Tensor:
    """(1, 3, h, w) window -> (1, Q, gh, gw) cosines with the text."""
    features = {GEM: _gem, ProxyCLIP: _proxyclip}.get(type(host), _last_block)(host, window)
    return torch.einsum('behw,qe->bqhw', F.normalize(features, dim=1), host.text_features)


def _softmax(q: Tensor, k: Tensor, bias: Tensor | None = None, scale: Tensor | None = None) -> Tensor:
    """(..., T, d) queries and keys -> (..., T, T)."""
    scores = q * (q.shape[-1] ** -0.5 if scale is None else scale) @ k.mT
    return (scores if bias is None else scores + bias).softmax(-1)


def _trunk(tower: CLIPTower, images: Tensor, leave: int = 1) -> Tensor:
    tokens = tower.embed(images)
    for block in tower.blocks[: len(tower.blocks) - leave]:
        tokens = block(tokens)
    return tokens


def _last_block(host: LastBlockHost, window: Tensor) -> Tensor:
    tower, block = host.tower, host.tower.blocks[-1]
    grid, tokens = tower.grid(tuple(window.shape[-2:])), _trunk(tower, window)
    q, k, v = heads(block, tokens)
    if host.attention == 'identity':
        mixed = v
    elif host.attention == 'csa':
        mixed = (_softmax(q, q) + _softmax(k, k)) @ v
    elif host.attention == 'naclip':
        mixed = _softmax(k, k, gaussian_prior(grid, host.gaussian_std)) @ v
    else:
        mixed = _softmax(q, {'vanilla': k, 'qq': q}[host.attention]) @ v
    written = merge_heads(block, mixed)
    if host.residual:
        written = tokens + written
        written = written + block.mlp(block.ln_2(written))
    return as_map(tower.project(written)[:, 1:], grid)


def _gem(host: GEM, window: Tensor) -> Tensor:
    tower = host.tower
    tokens = path = _trunk(tower, window, leave=host.depth - 1)
    for block in tower.blocks[1 - host.depth :]:
        q, k, v = heads(block, tokens)
        temperature = block.ln_1(tokens).norm(dim=-1).mean() * q.shape[-1] ** -0.5
        mixed = 0
        for side in (q, k, v):
            for _ in range(host.iterations):
                side = F.normalize(side, dim=-1)
                side = _softmax(side, side, scale=temperature) @ side
            side = F.normalize(side, dim=-1)
            mixed = mixed + _softmax(side, side, scale=temperature) @ v
        path = path + merge_heads(block, mixed / 3)
        tokens = tokens + merge_heads(block, _softmax(q, k) @ v)
        tokens = tokens + block.mlp(block.ln_2(tokens))
    return as_map(tower.project(path)[:, 1:], tower.grid(tuple(window.shape[-2:])))


def _proxyclip(host: ProxyCLIP, window: Tensor) -> Tensor:
    proxy = proxy_features(host, window)
    return as_map(host.tower.project(proxy_mixed(host, window, proxy)), tuple(proxy.shape[-2:]))


def proxy_features(host: ProxyCLIP | Trident, windows: Tensor) -> Tensor:
    """(B, 3, h, w) windows -> (B, P, gh, gw)."""
    images = (host.pixels(windows) - host.proxy.mean) / host.proxy.std
    grid = tuple(side // host.proxy.patch for side in images.shape[-2:])
    vit = host.proxy.network
    with written_out(vit):
        return as_map(vit.norm(vit.blocks(host.proxy.embed(images, grid)))[:, 1:], grid)


def proxy_mixed(host: ProxyCLIP | Trident, windows: Tensor, proxy: Tensor) -> Tensor:
    """(B, gh gw, D) output of CLIP's last attention, mixed as the (B, P, gh, gw) proxy says."""
    block, grid = host.tower.blocks[-1], tuple(proxy.shape[-2:])
    values = grid_values(block, _trunk(host.tower, windows), host.tower.grid(tuple(windows.shape[-2:])), grid)
    unit = F.normalize(proxy, dim=1).flatten(2)
    similarity = torch.einsum('bcm,bcn->bmn', unit, unit)
    similarity = (similarity - host.beta * similarity.mean()) * host.gamma
    similarity[similarity < 0] = float('-inf')
    return block.attn.out_proj(similarity.softmax(-1) @ values.flatten(2).transpose(1, 2))


@contextmanager
def written_out(network: nn.Module) -> Iterator[None]:
    """While it lasts, a network of timm writes out its attention weights, as the original DINO and SAM do."""
    fused = [module for module in network.modules() if getattr(module, 'fused_attn', False)]
    for module in fused:
        module.fused_attn = False
    try:
        yield
    finally:
        for module in fused:
            module.fused_attn = True
