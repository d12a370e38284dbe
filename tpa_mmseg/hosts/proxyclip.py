"""ProxyCLIP: the patches that a vision foundation model finds similar share CLIP's values."""

from __future__ import annotations

from mmseg.registry import MODELS
from torch import Tensor

from .clip_host import as_map
from .proxy_attention import mean_cosine, proxy_attention
from .proxy_host import ProxyHost

#: DINO ViT-B/8, behind the published numbers.
DINO = {'type': 'TimmEncoder', 'model': 'vit_base_patch8_224.dino'}


@MODELS.register_module()
class ProxyCLIP(ProxyHost):
    """Proxy attention with the cosines of each window on its own.

    Windows of any shape are right; the original swaps height and width in windows that are not square.

    Args:
        proxy: Config of the encoder. The paper has the default, DINO B/8, and the timm models
            ``vit_base_patch16_224.dino``, ``vit_base_patch14_reg4_dinov2.lvd142m``, ``samvit_base_patch16.sa1b`` and
            ``vit_base_patch16_224.mae``.
        padding: 56 is a multiple of the patches 8 and 14. Where a window is not one of CLIP's or the proxy's patch,
            what is beyond its last whole patch is not seen.
        **kwargs: As for :class:`ProxyHost`.
    """

    def __init__(
        self,
        clip: dict,
        proxy: dict = DINO,
        slide_crop: int = 336,
        slide_stride: int = 112,
        padding: int | str | None = 56,
        **kwargs,
    ) -> None:
        super().__init__(clip, proxy, slide_crop=slide_crop, slide_stride=slide_stride, padding=padding, **kwargs)

    def features(self, images: Tensor) -> Tensor:
        return self.mix(images, self.proxy_features(images))

    def mix(self, images: Tensor, proxy: Tensor) -> Tensor:
        """The features of CLIP, mixed as the proxy says.

        Args:
            images: (B, 3, h, w) windows.
            proxy: (B, P, gh, gw) features of the proxy.

        Returns:
            (B, E, gh, gw) features in the space of the text, not normalised.
        """
        grid = tuple(proxy.shape[-2:])
        mixed = proxy_attention(self.values(images, grid), proxy, self.beta * mean_cosine(proxy), self.gamma)
        return as_map(self.tower.project(self.tower.blocks[-1].attn.out_proj(mixed)), grid)
