"""CLIP's visual tower, taken apart: the input of its blocks, and the pieces of a block."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from open_clip.transformer import ResidualAttentionBlock, VisionTransformer
from torch import Tensor, nn

from ..errors import TPAError
from ..layers.attention import attend
from ..layers.compiling import compiled
from ..layers.feed_forward import feed_forward as wide_layer
from ..layers.feed_forward import residual
from ..layers.position import RULES, PositionTable
from ..layers.precision import autocast_to, used_precision
from ..options import one_of

#: The half precision of CLIP: the one that it was published in.
CLIP_HALF = 'float16'


class CLIPTower(nn.Module):
    """A frozen visual tower that can stop before its last blocks, in which the hosts differ.

    Nothing here forbids gradients: methods that adapt LayerNorms at test time enable them.

    Args:
        visual: open_clip's vision transformer.
        position: Rule that resizes the position embedding to another grid: ``'dino'`` (most hosts), ``'size'``
            (MaskCLIP) or ``'timm'`` (by size and antialiased: GEM).
        precision: ``'float32'``, ``'float16'`` or ``'bfloat16'`` by autocast, or ``'auto'``: float16 on CUDA, float32
            elsewhere.
        compile: Run the blocks before the last by torch.compile, see :func:`~tpa_mmseg.layers.compiling.compiled`.
    """

    def __init__(
        self, visual: VisionTransformer, position: str = 'dino', precision: str = 'auto', compile: bool = False
    ) -> None:
        super().__init__()
        self.visual = visual.requires_grad_(False).eval()
        self.positions = PositionTable(one_of('position', position, tuple(RULES)), visual.grid_size, prefix=1)
        self._precision = precision
        self._run_block = compiled(run_block) if compile else run_block

    @property
    def blocks(self) -> nn.ModuleList:
        return self.visual.transformer.resblocks

    @property
    def _device(self) -> torch.device:
        return self.visual.conv1.weight.device

    @property
    def precision(self) -> str:
        """The type in which the tower computes where it is now."""
        return used_precision(self._precision, self._device, CLIP_HALF)

    @property
    def patch_size(self) -> int:
        return self.visual.patch_size[0]

    @property
    def embed_dim(self) -> int:
        """Width E of the projected features, shared with the text."""
        return self.visual.proj.shape[1]

    def grid(self, size: tuple[int, int]) -> tuple[int, int]:
        """Height and width in patches; pixels beyond the last whole patch are dropped."""
        grid = (size[0] // self.patch_size, size[1] // self.patch_size)
        if 0 in grid:
            raise TPAError(
                f'An image or window of {size[0]} x {size[1]} pixels is smaller than one patch of {self.patch_size}: '
                'resize images to a larger scale in the test pipeline.'
            )
        return grid

    def autocast(self) -> torch.autocast:
        """Returns a context that runs the tower in its precision."""
        return autocast_to(self._device, self.precision)

    def embed(self, images: Tensor) -> Tensor:
        """(B, 3, H, W) normalized images -> (B, 1 + h w, D) tokens that enter the first block, class token first."""
        visual, grid = self.visual, self.grid(tuple(images.shape[-2:]))
        patches = visual.conv1(images).flatten(2).transpose(1, 2)
        token = visual.class_embedding.to(patches.dtype).expand(len(patches), 1, -1)
        tokens = torch.cat((token, patches), 1)
        del patches
        return visual.ln_pre(tokens.add_(self._position(grid).to(tokens.dtype)))

    def _position(self, grid: tuple[int, int]) -> Tensor:
        """(1, 1 + h w, D) position embedding of a grid."""
        table = self.visual.positional_embedding[None]
        # Hosts with DINO's rule do not resize to a grid with the native *number* of patches, whatever its shape.
        if self.positions.rule == 'dino' and 1 + grid[0] * grid[1] == table.shape[1]:
            return table
        return self.positions.at(table, grid)

    def trunk(self, images: Tensor, leave: int = 1) -> Tensor:
        """(B, 3, H, W) images -> (B, 1 + h w, D) tokens that enter the last ``leave`` blocks."""
        tokens = self.embed(images)
        for block in self.blocks[: len(self.blocks) - leave]:
            tokens = self._run_block(block, tokens)
        return tokens

    def project(self, tokens: Tensor) -> Tensor:
        """(B, T, D) tokens -> (B, T, E) features in the space of the text, not normalized."""
        return self.visual.ln_post(tokens) @ self.visual.proj


def heads(block: ResidualAttentionBlock, tokens: Tensor, parts: str = 'qkv') -> tuple[Tensor | None, ...]:
    """The queries, keys and values of a block, (B, heads, T, d) each.

    Args:
        block: The block.
        tokens: (B, T, D) tokens that enter it.
        parts: The ones to compute; the others are None.
    """
    attention, tokens = block.attn, block.ln_1(tokens)
    if tokens.device.type != 'cpu' and parts == 'qkv':
        joint = F.linear(tokens, attention.in_proj_weight, attention.in_proj_bias)
        return tuple(joint.unflatten(-1, (3, attention.num_heads, -1)).permute(2, 0, 3, 1, 4))
    # On a CPU one after the other is as fast, and tensors of one size leave no holes between them in memory.
    layers = zip('qkv', attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3), strict=True)
    return tuple(
        F.linear(tokens, *layer).unflatten(-1, (attention.num_heads, -1)).transpose(1, 2) if name in parts else None
        for name, *layer in layers
    )


def merge_heads(block: ResidualAttentionBlock, mixed: Tensor) -> Tensor:
    """(B, heads, T, d) mixed values -> (B, T, D) output of the block's attention branch."""
    return block.ls_1(block.attn.out_proj(mixed.transpose(1, 2).flatten(2)))


def feed_forward(block: ResidualAttentionBlock, tokens: Tensor) -> Tensor:
    """The second half of a block, with its residual connection: (B, T, D) -> (B, T, D)."""
    mlp = block.mlp
    return residual(tokens, block.ls_2(wide_layer(tokens, block.ln_2, mlp.c_fc, mlp.gelu, mlp.c_proj)))


def finish_block(block: ResidualAttentionBlock, tokens: Tensor, mixed: Tensor) -> Tensor:
    """The rest of a block after its attention: (B, T, D) tokens that enter it, (B, heads, T, d) mixed values."""
    return feed_forward(block, residual(tokens, merge_heads(block, mixed)))


def run_block(block: ResidualAttentionBlock, tokens: Tensor) -> Tensor:
    """A whole block of CLIP, (B, T, D) -> (B, T, D), without a matrix of all pairs of tokens.

    The block's own ``forward`` gives the same, but on a CPU PyTorch computes that matrix.
    """
    return finish_block(block, tokens, attend(*heads(block, tokens)))
