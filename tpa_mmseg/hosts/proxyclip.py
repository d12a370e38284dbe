"""ProxyCLIP: patches with similar features in a vision foundation model share CLIP's values."""

from __future__ import annotations

import torch
from mmseg.registry import MODELS
from torch import Tensor

from ..encoders import Encoder
from .block_parts import BlockParts, Plugin, attach
from .proxy_attention import mean_cosine, proxy_attention
from .proxy_host import ProxyHost
from .windows import as_map

#: DINO ViT-B/8, the proxy of the published results.
DINO = {'type': 'TimmEncoder', 'model': 'vit_base_patch8_224.dino'}


@MODELS.register_module()
class ProxyCLIP(ProxyHost):
    """Proxy attention with the cosines of each window separately.

    Windows may have any shape; the original swaps height and width in windows that are not square.

    Args:
        proxy: Config of the encoder. The paper uses DINO B/8, the default, and the timm models
            ``vit_base_patch16_224.dino``, ``vit_base_patch14_reg4_dinov2.lvd142m``, ``samvit_base_patch16.sa1b`` and
            ``vit_base_patch16_224.mae``.
        padding: 56 is a multiple of the patches 8 and 14. If a window is not a multiple of CLIP's or the proxy's
            patch, pixels beyond its last whole patch are dropped.
        plugin: Config of a plug-in that changes the last block, e.g. FSA.
        **kwargs: As for :class:`ProxyHost`.
    """

    def __init__(
        self,
        clip: dict,
        proxy: dict | Encoder = DINO,
        slide_crop: int = 336,
        slide_stride: int = 112,
        padding: int | str | None = 56,
        plugin: dict | Plugin | None = None,
        **kwargs,
    ) -> None:
        super().__init__(clip, proxy, slide_crop=slide_crop, slide_stride=slide_stride, padding=padding, **kwargs)
        self.plugin = attach(plugin, self)

    def features(self, images: Tensor) -> Tensor:
        return self._features(images, self.proxy_features(images))

    def _features(self, images: Tensor, proxy: Tensor) -> Tensor:
        if self.plugin is not None:
            return self.plugin.features(self, images, self.open_block(images, proxy))
        return self.mix(images, proxy)

    def maps_and_proxy(self, images: Tensor) -> Tensor:
        with self.tower.autocast():
            proxy = self.proxy_features(images)
            features = self._features(images, proxy)
        return torch.cat((self.cosines(features), proxy), 1)

    def mix(self, images: Tensor, proxy: Tensor) -> Tensor:
        """Computes the features of CLIP, mixed by the proxy's similarities.

        Args:
            images: (B, 3, h, w) windows.
            proxy: (B, P, gh, gw) features of the proxy.

        Returns:
            (B, E, gh, gw) features in the space of the text, not normalized.
        """
        return self.open_block(images, proxy).features()

    def open_block(self, images: Tensor, proxy: Tensor | None = None) -> BlockParts:
        """Takes CLIP's last block with proxy attention apart. Its heads share the weights, so they count as one.

        Args:
            images: (B, 3, h, w) windows.
            proxy: (B, P, gh, gw) features of the proxy, if they are known already.
        """
        proxy = self.proxy_features(images) if proxy is None else proxy
        grid, threshold = tuple(proxy.shape[-2:]), self.beta * mean_cosine(proxy)

        def mix(values: Tensor) -> Tensor:
            return proxy_attention(as_map(values[:, 0], grid), proxy, threshold, self.gamma)[:, None]

        def finish(mixed: Tensor) -> Tensor:
            return as_map(self.tower.project(self.tower.blocks[-1].attn.out_proj(mixed[:, 0])), grid)

        return BlockParts(self.values(images, grid).flatten(2).transpose(1, 2)[:, None], grid, mix, finish)

    def settings(self) -> dict:
        plugin = {} if self.plugin is None else {'plugin': self.plugin.fingerprint()}
        return {**super().settings(), **plugin}
