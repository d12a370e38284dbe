"""Hosts that change the attention of CLIP's last block: CLIP itself, SCLIP, ClearCLIP, NACLIP."""

from __future__ import annotations

from typing import Annotated

from mmseg.registry import MODELS
from open_clip.transformer import ResidualAttentionBlock
from torch import Tensor

from ..clip.tower import finish_block, heads, merge_heads, run_block
from ..errors import TPAError
from ..options import AtLeastOne, Choice, Positive, one_of
from .attention import STRATEGIES, gaussian_prior
from .block_parts import BlockParts, Plugin, attach
from .clip_host import CLIPHost
from .windows import as_map


class LastBlockHost(CLIPHost):
    """CLIP with another attention in its last block.

    Args:
        attention: Strategy that mixes values: ``'vanilla'`` (CLIP), ``'qq'`` (ClearCLIP), ``'kk'``, ``'csa'`` (SCLIP),
            ``'identity'`` (MaskCLIP), ``'naclip'`` (``'kk'`` with a Gaussian prior) or ``'nonly'`` (the prior alone).
        residual: Keep the block's residual connections and its feed-forward half.
        gaussian_std: Standard deviation of the Gaussian prior, in patches.
        last_n_layers: Sum the changed outputs of this many last blocks, which are plain blocks for those after them.
        plugin: Config of a plug-in that changes the last block, e.g. FSA or ResCLIP.
        **kwargs: As for :class:`CLIPHost`.
    """

    def __init__(
        self,
        clip: dict,
        attention: Annotated[str, Choice(STRATEGIES)] = 'vanilla',
        residual: bool = True,
        gaussian_std: Positive = 5.0,
        last_n_layers: AtLeastOne = 1,
        plugin: dict | Plugin | None = None,
        **kwargs,
    ) -> None:
        super().__init__(clip, **kwargs)
        self.attention = one_of('attention', attention, tuple(STRATEGIES))
        self.residual = residual
        self.gaussian_std = float(gaussian_std)
        if not 1 <= last_n_layers <= len(self.tower.blocks):
            raise TPAError(f'last_n_layers must be between 1 and {len(self.tower.blocks)}, not {last_n_layers}.')
        self.last_n_layers = last_n_layers
        self.plugin = attach(plugin, self)
        if self.plugin is not None and last_n_layers != 1:
            raise TPAError('A plug-in changes the last block only: set last_n_layers to 1, or remove plugin.')

    def features(self, images: Tensor) -> Tensor:
        if self.plugin is not None:
            return self.plugin.features(self, images)
        return as_map(self.tokens(images)[:, 1:], self.tower.grid(tuple(images.shape[-2:])))

    def tokens(self, images: Tensor) -> Tensor:
        """(B, 3, h, w) windows -> (B, 1 + gh gw, E) features of all tokens, the class token first."""
        grid = self.tower.grid(tuple(images.shape[-2:]))
        tokens = self.tower.trunk(images, leave=self.last_n_layers)
        *before, last = self.tower.blocks[-self.last_n_layers :]
        total = 0
        for block in before:
            total = total + self.last_block(block, tokens, grid)
            tokens = run_block(block, tokens)
        return self.tower.project(total + self.last_block(last, tokens, grid))

    def last_block(self, block: ResidualAttentionBlock, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        """(B, T, D) tokens that enter a block -> (B, T, D) output of the block as the host changes it."""
        parts = heads(block, tokens, STRATEGIES[self.attention].reads)
        return self._write(block, tokens, self._mix(*parts, grid))

    def open_block(self, images: Tensor, tokens: Tensor | None = None) -> BlockParts:
        """Takes the last block apart.

        Args:
            images: (B, 3, h, w) windows.
            tokens: (B, 1 + gh gw, D) tokens that enter the block, if they are known already.
        """
        grid, block = self.tower.grid(tuple(images.shape[-2:])), self.tower.blocks[-1]
        tokens = self.tower.trunk(images) if tokens is None else tokens
        q, k, v = heads(block, tokens)

        def finish(mixed: Tensor) -> Tensor:
            return as_map(self.tower.project(self._write(block, tokens, mixed))[:, 1:], grid)

        return BlockParts(v, grid, lambda values, **changes: self._mix(q, k, values, grid, **changes), finish)

    def _mix(
        self,
        q: Tensor | None,
        k: Tensor | None,
        v: Tensor,
        grid: tuple[int, int],
        bias: Tensor | None = None,
        scale: float | None = None,
    ) -> Tensor:
        """The host's attention on (B, heads, T, d) queries, keys and values. Args: bias: added to the scores."""
        strategy = STRATEGIES[self.attention]
        if strategy.gaussian:
            prior = gaussian_prior(grid, self.gaussian_std, str(v.device))
            bias = prior if bias is None else prior + bias
        return strategy.mix(q, k, v, bias, scale)

    def _write(self, block: ResidualAttentionBlock, tokens: Tensor, mixed: Tensor) -> Tensor:
        """The rest of a block after its attention: (B, T, D) tokens that enter it, (B, heads, T, d) mixed values."""
        return finish_block(block, tokens, mixed) if self.residual else merge_heads(block, mixed)

    def settings(self) -> dict:
        return {
            **super().settings(),
            **({} if self.plugin is None else {'plugin': self.plugin.fingerprint()}),
            'attention': self.attention,
            'residual': self.residual,
            'gaussian_std': self.gaussian_std if STRATEGIES[self.attention].gaussian else None,
            'last_n_layers': self.last_n_layers,
        }


@MODELS.register_module()
class CLIP(LastBlockHost):
    """Plain CLIP: the patch tokens of its unchanged tower. Args: see :class:`LastBlockHost`."""


@MODELS.register_module()
class SCLIP(LastBlockHost):
    """Correlative self-attention: queries attend to queries, keys to keys. Args: see :class:`LastBlockHost`."""

    def __init__(self, clip: dict, attention: str = 'csa', **kwargs) -> None:
        super().__init__(clip, attention, **kwargs)


@MODELS.register_module()
class ClearCLIP(LastBlockHost):
    """Query-query attention without residual connection and feed-forward.

    The published method; the original repository ships ``attention='vanilla'``. Args: see :class:`LastBlockHost`.
    """

    def __init__(
        self,
        clip: dict,
        attention: str = 'qq',
        residual: bool = False,
        logit_scale: float = 50.0,
        slide_crop: int = 448,
        slide_stride: int = 224,
        padding: int | str | None = 'patch',
        **kwargs,
    ) -> None:
        super().__init__(
            clip,
            attention,
            residual,
            logit_scale=logit_scale,
            slide_crop=slide_crop,
            slide_stride=slide_stride,
            padding=padding,
            **kwargs,
        )


@MODELS.register_module()
class NACLIP(LastBlockHost):
    """Key-key attention with a Gaussian prior, without residual connection and feed-forward, and mask refinement.

    Args: see :class:`LastBlockHost`.
    """

    def __init__(
        self,
        clip: dict,
        attention: str = 'naclip',
        residual: bool = False,
        pamr_steps: int = 10,
        resize_via_input: bool = True,
        **kwargs,
    ) -> None:
        super().__init__(clip, attention, residual, pamr_steps=pamr_steps, resize_via_input=resize_via_input, **kwargs)
