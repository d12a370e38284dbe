"""Attention over all patches of a SAM, a few rows of its grid at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from timm.models.vision_transformer_sam import Attention
from torch import Tensor

# Attention weights that exist at a time: heads x rows x all patches.
_CHUNK_ELEMENTS = {'cpu': 1 << 22}
_CHUNK_ELEMENTS_GPU = 1 << 26


@dataclass
class GlobalAttention:
    """The attention of a block over all patches of its (H, W) grid, computed a few rows of the grid at a time.

    Attributes:
        queries, keys, values: (heads, H, W, d).
        down, across: (H, H, d) and (W, W, d) embedding of the distance between two rows and two columns.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    down: Tensor
    across: Tensor

    @classmethod
    def of(cls, attention: Attention, tokens: Tensor) -> GlobalAttention:
        """Args: attention: of timm's SAM; tokens: (1, H, W, D) normalized tokens that enter it."""
        joint = attention.qkv(tokens)[0].unflatten(-1, (3, attention.num_heads, -1))
        tables = (_by_distance(table).to(joint.dtype) for table in (attention.rel_pos_h, attention.rel_pos_w))
        return cls(*joint.permute(2, 3, 0, 1, 4).contiguous(), *tables)

    @property
    def grid(self) -> tuple[int, int]:
        return tuple(self.queries.shape[1:3])

    def float(self) -> GlobalAttention:
        """The same in float32."""
        return replace(self, **{field.name: getattr(self, field.name).float() for field in fields(self)})

    def weights(self, top: int, bottom: int, width: int | None = None) -> Tensor:
        """Attention weights of the patches in rows ``top`` to ``bottom``, up to column ``width``.

        Returns:
            (heads, bottom - top, width, H, W) weights, summing to one over the last two axes.
        """
        queries = self.queries[:, top:bottom, :width]
        logits = self._bias(queries, top).flatten(3).flatten(1, 2)
        scaled = (queries * queries.shape[-1] ** -0.5).flatten(1, 2)
        weights = logits.baddbmm_(scaled, self.keys.flatten(1, 2).mT).softmax(2)
        return weights.view(*queries.shape[:3], *self.grid)

    def _bias(self, queries: Tensor, top: int) -> Tensor:
        """Position bias of queries in rows from ``top`` on, for all patches: (heads, rows, width, H, W)."""
        rows, width = queries.shape[1:3]
        down = torch.einsum('hywd,ykd->hywk', queries, self.down[top : top + rows])
        across = torch.einsum('hywd,wkd->hywk', queries, self.across[:width])
        return down[..., :, None] + across[..., None, :]

    def bands(self, height: int | None = None) -> Iterator[tuple[int, int]]:
        """Rows of the grid, up to ``height``, that are computed together: (top, bottom) pairs."""
        heads, rows, columns, _ = self.queries.shape
        elements = _CHUNK_ELEMENTS.get(self.queries.device.type, _CHUNK_ELEMENTS_GPU)
        step = max(1, elements // (heads * columns * rows * columns))
        for top in range(0, height or rows, step):
            yield top, min(top + step, height or rows)

    def mix(self) -> Tensor:
        """The mixed values of all patches, heads side by side: (1, H, W, D)."""
        keys, values = (part.flatten(1, 2)[None] for part in (self.keys, self.values))
        mixed = []
        for top, bottom in self.bands():
            queries = self.queries[:, top:bottom]
            bias = self._bias(queries, top).flatten(3).flatten(1, 2)[None]
            mixed.append(F.scaled_dot_product_attention(queries.flatten(1, 2)[None], keys, values, attn_mask=bias))
        return torch.cat(mixed, 2)[0].transpose(0, 1).flatten(1).view(1, *self.grid, -1)


def _by_distance(table: Tensor) -> Tensor:
    """(2 n - 1, d) embeddings of the distances from 1 - n to n - 1 -> (n, n, d), one for each pair of positions."""
    position = torch.arange((len(table) + 1) // 2, device=table.device)
    return table[position[:, None] - position + len(position) - 1]
