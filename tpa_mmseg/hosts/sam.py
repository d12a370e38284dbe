"""SAM's image encoder: its embedding of an image, and the attention of its last block."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from timm.models.vision_transformer_sam import Attention, Block
from torch import Tensor, nn

from ..encoders.timm_models import build_network, load_file
from ..errors import TPAError
from ..weights import find, weights_dir
from .clip_host import one_of
from .clip_tower import PRECISIONS

# Statistics of the pixels, in units of 0 to 255.
_MEAN = (123.675, 116.28, 103.53)
_STD = (58.395, 57.12, 57.375)

# Attention weights that exist at a time: heads x rows x all patches.
_CHUNK_ELEMENTS = {'cpu': 1 << 22}
_CHUNK_ELEMENTS_GPU = 1 << 26


@dataclass(frozen=True)
class SAMModel:
    """The dimensions of a SAM.

    Args:
        embed_dim, depth, num_heads, global_attn_indexes, window_size: Of the image encoder.
        image_size: Side of its square input.
        prompt_dim: Width of what encoder and decoder exchange.
        decoder_heads, decoder_mlp, iou_hidden, mask_in_chans: Of the decoder of prompts.
    """

    embed_dim: int
    depth: int
    num_heads: int
    global_attn_indexes: tuple[int, ...]
    window_size: int = 14
    image_size: int = 1024
    prompt_dim: int = 256
    decoder_heads: int = 8
    decoder_mlp: int = 2048
    iou_hidden: int = 256
    mask_in_chans: int = 16

    patch = 16

    @classmethod
    def of(cls, model: str | Mapping) -> SAMModel:
        """The model of a name, or of a dict of its dimensions."""
        if isinstance(model, str):
            return MODELS[one_of('sam.model', model, tuple(MODELS))]
        try:
            found = cls(**model)
        except TypeError as error:
            names = ', '.join(field.name for field in fields(cls))
            raise TPAError(f'sam.model as a dict gives the dimensions {names}: {error}.') from error
        if found.depth - 1 not in found.global_attn_indexes:
            raise TPAError(f'The last block of SAM, {found.depth - 1}, must be among sam.model.global_attn_indexes.')
        return found

    @property
    def grid(self) -> int:
        """Patches along each side."""
        return self.image_size // self.patch

    def frame(self, size: tuple[int, int], side: int | None = None) -> tuple[int, int]:
        """The height and width of an image whose long side is brought to ``side``, by default that of the input."""
        scale = (side or self.image_size) / max(size)
        return int(size[0] * scale + 0.5), int(size[1] * scale + 0.5)

    def network(self) -> nn.Module:
        """timm's image encoder with random weights."""
        config = {
            'type': 'VisionTransformerSAM',
            'img_size': self.image_size,
            'patch_size': self.patch,
            'embed_dim': self.embed_dim,
            'depth': self.depth,
            'num_heads': self.num_heads,
            'window_size': self.window_size,
            'global_attn_indexes': self.global_attn_indexes,
            'use_rel_pos': True,
            'neck_chans': self.prompt_dim,
        }
        return build_network(config, pretrained=False)


MODELS = {
    'vit_b': SAMModel(768, 12, 12, (2, 5, 8, 11)),
    'vit_l': SAMModel(1024, 24, 16, (5, 11, 17, 23)),
    'vit_h': SAMModel(1280, 32, 16, (7, 15, 23, 31)),
}
#: The names under which the weights were published.
FILES = {'vit_b': 'sam_vit_b_01ec64', 'vit_l': 'sam_vit_l_0b3195', 'vit_h': 'sam_vit_h_4b8939'}


def find_checkpoint(model: str | Mapping, checkpoint: str | os.PathLike | None) -> Path:
    """The original file of a SAM: the one that is given, or the one in the weights folder."""
    if checkpoint is not None:
        path = Path(checkpoint).expanduser()
    elif isinstance(model, str):
        path = find(FILES[model]) or weights_dir() / f'{FILES[model]}.pth'
    else:
        raise TPAError('A SAM given as a dict has no published weights: set sam.checkpoint to a file.')
    if not path.is_file():
        raise TPAError(
            f'There is no SAM checkpoint {path}: bring {FILES.get(str(model), path.name)}.pth as the authors of '
            'Segment Anything published it and save it there, or set sam.checkpoint (TPA_WEIGHTS names another folder).'
        )
    return path


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
        """Args: attention: of timm's SAM; tokens: (1, H, W, D) normalised tokens that enter it."""
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
        """What the patches in rows ``top`` to ``bottom``, up to column ``width``, take of all patches.

        Returns:
            (heads, bottom - top, width, H, W) weights, summing to one over the last two axes.
        """
        queries = self.queries[:, top:bottom, :width]
        logits = self._bias(queries, top).flatten(3).flatten(1, 2)
        scaled = (queries * queries.shape[-1] ** -0.5).flatten(1, 2)
        weights = logits.baddbmm_(scaled, self.keys.flatten(1, 2).mT).softmax(2)
        return weights.view(*queries.shape[:3], *self.grid)

    def _bias(self, queries: Tensor, top: int) -> Tensor:
        """How much queries in rows from ``top`` on like the distances to all patches: (heads, rows, width, H, W)."""
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


@dataclass
class SAMFeatures:
    """What SAM sees in an image.

    Attributes:
        attention: Of the last block, in float32, over all patches of the square input.
        embedding: (1, prompt_dim, n, n) float32 output of the encoder, None where it was not asked for.
        image_size: Height and width of the image.
        frame: Height and width that it has in the square input; the rest is padding.
    """

    attention: GlobalAttention
    embedding: Tensor | None
    image_size: tuple[int, int]
    frame: tuple[int, int]

    @property
    def grid(self) -> tuple[int, int]:
        """Height and width in whole patches without padding."""
        return tuple(max(1, side // SAMModel.patch) for side in self.frame)


class SAMEncoder(nn.Module):
    """The frozen image encoder of SAM, with the weights of the original file.

    The attention of its global blocks runs in bands of rows: all weights of one of them would take heads x 4096 x 4096
    floats, 0.8 GB in ViT-B.

    Args:
        model: ``'vit_b'``, ``'vit_l'``, ``'vit_h'`` or the dimensions of a :class:`SAMModel`.
        checkpoint: The original file, None for the one in the weights folder, False for random weights.
        precision: ``'float32'``, or ``'float16'`` or ``'bfloat16'`` by autocast.
    """

    def __init__(
        self,
        model: str | Mapping = 'vit_b',
        checkpoint: str | os.PathLike | bool | None = None,
        precision: str = 'float32',
    ) -> None:
        super().__init__()
        self.model = SAMModel.of(model)
        self.precision = one_of('sam.precision', precision, tuple(PRECISIONS))
        self.path = None if checkpoint is False else find_checkpoint(model, checkpoint)
        self.network = self.model.network().requires_grad_(False).eval()
        if self.path is not None:
            load_file(self.network, self.path)
        for name, values in (('mean', _MEAN), ('std', _STD)):
            self.register_buffer(name, torch.tensor(values).view(3, 1, 1), persistent=False)

    @classmethod
    def of(cls, sam: Mapping | None) -> SAMEncoder:
        """Reads the ``sam`` entry of a config."""
        unknown = sorted(set(sam or {}) - {'model', 'checkpoint', 'precision'})
        if unknown:
            raise TPAError(f'sam takes a model, checkpoint and precision, not {", ".join(unknown)}.')
        return cls(**(sam or {}))

    @torch.no_grad()
    def forward(self, image: np.ndarray, embed: bool) -> SAMFeatures:
        """Looks at an image.

        Args:
            image: (H, W, 3) uint8 RGB.
            embed: Whether the embedding, which prompts need, is wanted as well.
        """
        frame = self.model.frame(image.shape[:2])
        *blocks, last = self.network.blocks
        with torch.autocast(self.mean.device.type, PRECISIONS[self.precision], enabled=self.precision != 'float32'):
            tokens = self.network.patch_embed(self._input(image, frame)) + self.network.pos_embed
            for block in blocks:
                tokens = block(tokens) if block.window_size else _global_block(block, tokens)
            attention = GlobalAttention.of(last.attn, last.norm1(tokens))
            embedding = None
            if embed:
                tokens = _global_block(last, tokens, attention)
                embedding = self.network.neck(tokens.permute(0, 3, 1, 2)).float()
        return SAMFeatures(attention.float(), embedding, image.shape[:2], frame)

    def _input(self, image: np.ndarray, frame: tuple[int, int]) -> Tensor:
        """(1, 3, n, n) normalised input, padded with zeros at the right and below."""
        resized = np.array(Image.fromarray(image).resize(frame[::-1], Image.Resampling.BILINEAR))
        pixels = torch.from_numpy(resized).to(self.mean.device).permute(2, 0, 1).float()
        side = self.model.image_size
        return F.pad((pixels - self.mean) / self.std, (0, side - frame[1], 0, side - frame[0]))[None]


def _global_block(block: Block, tokens: Tensor, attention: GlobalAttention | None = None) -> Tensor:
    """A block of timm's SAM with attention over all patches: (1, H, W, D) tokens -> (1, H, W, D)."""
    attention = attention or GlobalAttention.of(block.attn, block.norm1(tokens))
    tokens = tokens + block.attn.proj(attention.mix())
    return tokens + block.mlp(block.norm2(tokens))
