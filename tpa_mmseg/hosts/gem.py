"""GEM: self-self attention on a path beside CLIP's last blocks."""

from __future__ import annotations

from typing import Annotated

import torch
from mmseg.registry import MODELS
from open_clip.transformer import ResidualAttentionBlock
from torch import Tensor

from ..clip.tower import finish_block, heads, merge_heads
from ..errors import TPAError
from ..layers.attention import attend
from ..layers.feed_forward import residual
from ..options import Positive, Range
from .clip_host import CLIPHost
from .windows import as_map


@MODELS.register_module()
class GEM(CLIPHost):
    """Grounding everything: the plain tower runs on, and its last blocks also write to a second path.

    Args:
        depth: The last ``depth - 1`` blocks write to the path.
        iterations: Number of times that queries, keys and values are normalized and attend to themselves before they
            mix values.
        temperature: Of the self-self attention. Default: the mean length of a block's normalized tokens times
            ``1 / sqrt(d)``, for each image separately.
        residual: The path starts as the tokens that enter the first of these blocks and each block adds to it.
            Otherwise only the output of the last block counts.
        **kwargs: As for :class:`CLIPHost`.
    """

    def __init__(
        self,
        clip: dict,
        depth: Annotated[int, Range(2)] = 7,
        iterations: Annotated[int, Range(0)] = 1,
        temperature: Positive | None = None,
        residual: bool = True,
        templates: tuple[str, ...] = ('a photo of a {}.',),
        logit_scale: float = 100.0,
        slide_crop: int = 0,
        position: str = 'timm',
        **kwargs,
    ) -> None:
        super().__init__(
            clip,
            templates=templates,
            logit_scale=logit_scale,
            slide_crop=slide_crop,
            position=position,
            **kwargs,
        )
        if not 2 <= depth <= len(self.tower.blocks) + 1:
            raise TPAError(f'GEM.depth must be between 2 and {len(self.tower.blocks) + 1}, not {depth}.')
        self.depth = depth
        self.iterations = iterations
        self.temperature = temperature
        self.residual = residual

    def features(self, images: Tensor) -> Tensor:
        return as_map(self.tokens(images)[:, 1:], self.tower.grid(tuple(images.shape[-2:])))

    def tokens(self, images: Tensor) -> Tensor:
        """(B, 3, h, w) windows -> (B, 1 + gh gw, E) features of all tokens, the class token first."""
        tokens = path = self.tower.trunk(images, leave=self.depth - 1)
        *before, last = self.tower.blocks[1 - self.depth :]
        for block in before:
            q, k, v = heads(block, tokens)
            if self.residual:
                path = residual(path, self.self_self(block, tokens, q, k, v))
            tokens = finish_block(block, tokens, attend(q, k, v))
        written = self.self_self(last, tokens, *heads(last, tokens))
        return self.tower.project(residual(path, written) if self.residual else written)

    def self_self(self, block: ResidualAttentionBlock, tokens: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """(B, T, D) tokens that enter a block and their queries, keys and values -> (B, T, D) written to the path."""
        if self.temperature is None:
            temperature = block.ln_1(tokens).norm(dim=-1).mean(-1)[:, None, None, None] * q.shape[-1] ** -0.5
        else:
            temperature = q.new_full((1, 1, 1, 1), self.temperature)
        # The temperature differs between images, so half of it goes to each side of the product.
        half = temperature.sqrt()

        def scaled(side: Tensor) -> Tensor:
            return side * (half / side.norm(dim=-1, keepdim=True).clamp_min(1e-12))

        def mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            """Mixes (B, heads, T, d) values of some heads."""
            mixed = 0
            for side in (q, k, v):
                for _ in range(self.iterations):
                    side = scaled(side)
                    # Values may be mixed in their scaled form: the next step normalizes the mixture.
                    side = attend(side, side, side, scale=1.0)
                side = scaled(side)
                mixed = mixed + attend(side, side, v, scale=1.0)
            return mixed / 3

        # On a CPU head by head, so that intermediate results are small and stay in the cache.
        together = 1 if q.device.type == 'cpu' else q.shape[1]
        groups = zip(*(part.split(together, 1) for part in (q, k, v)), strict=True)
        # In the layout of merge_heads, so that it does not have to copy.
        mixed = torch.cat([mix(*group).transpose(1, 2) for group in groups], 2)
        return merge_heads(block, mixed.transpose(1, 2))

    def settings(self) -> dict:
        names = ('depth', 'iterations', 'temperature', 'residual')
        return {**super().settings(), **{name: getattr(self, name) for name in names}}
