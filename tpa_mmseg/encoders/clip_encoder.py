"""CLIPEncoder: CLIP's own patch features, for the ablation without another encoder."""

from __future__ import annotations

import json
from typing import Annotated

from mmseg.registry import MODELS
from torch import Tensor

from ..clip.source import CLIPSpec
from ..clip.tower import CLIP_HALF
from ..layers.position import RULES
from ..options import AtLeastOne, Choice
from .base import Encoder


@MODELS.register_module()
class CLIPEncoder(Encoder):
    """The patch tokens of CLIP's plain visual tower, projected to the space of its text.

    Args:
        clip: ``dict(model=, pretrained=, precision=, quick_gelu=, compile=)``, see
            :class:`~tpa_mmseg.clip.source.CLIPSpec`.
        position: Rule that resizes the position table to the image's grid, a key of
            :data:`~tpa_mmseg.layers.position.RULES`.
        short_side: As in :class:`Encoder`.
        max_tokens: As in :class:`Encoder`.
    """

    half = CLIP_HALF

    def __init__(
        self,
        clip: Annotated[dict, CLIPSpec],
        position: Annotated[str, Choice(RULES)] = 'dino',
        short_side: AtLeastOne | None = None,
        max_tokens: AtLeastOne | None = None,
    ) -> None:
        source = CLIPSpec.of(clip)
        tower = source.tower(position)
        super().__init__(
            tower,
            dim=tower.embed_dim,
            patch=tower.patch_size,
            mean=source.mean,
            std=source.std,
            short_side=short_side,
            max_tokens=max_tokens,
            precision=source.precision,
        )
        self.model = {'model': source.name, 'config': json.loads(json.dumps(source.config)), 'position': position}

    def encode(self, images: Tensor) -> Tensor:
        tokens = self.network.project(self.network.trunk(images, leave=0))
        return tokens[:, 1:].transpose(1, 2).unflatten(2, self.network.grid(tuple(images.shape[-2:])))

    def fingerprint(self) -> dict:
        return {**super().fingerprint(), **self.model}
