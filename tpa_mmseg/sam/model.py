"""The dimensions of SAM models, and their checkpoint files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from ..encoders.timm_models import build_network
from ..errors import TPAError
from ..options import AtLeastOne, one_of, options_of
from ..weights.files import local_path
from ..weights.sources import sam_source


@dataclass(frozen=True)
class SAMModel:
    """The dimensions of a SAM.

    Args:
        embed_dim, depth, num_heads, global_attn_indexes, window_size: Of the image encoder.
        image_size: Side of its square input.
        prompt_dim: Channels of the embedding that encoder and decoder exchange.
        decoder_heads, decoder_mlp, iou_hidden, mask_in_chans: Of the mask decoder.
    """

    embed_dim: AtLeastOne
    depth: AtLeastOne
    num_heads: AtLeastOne
    global_attn_indexes: tuple[int, ...]
    window_size: AtLeastOne = 14
    image_size: AtLeastOne = 1024
    prompt_dim: AtLeastOne = 256
    decoder_heads: AtLeastOne = 8
    decoder_mlp: AtLeastOne = 2048
    iou_hidden: AtLeastOne = 256
    mask_in_chans: AtLeastOne = 16

    patch = 16

    @classmethod
    def of(cls, model: str | Mapping) -> SAMModel:
        """Returns the model of a name, or of a dict of its dimensions."""
        if isinstance(model, str):
            return PUBLISHED[one_of('sam.model', model, tuple(PUBLISHED))]
        found = options_of(cls, model, 'sam.model')
        if found.depth - 1 not in found.global_attn_indexes:
            raise TPAError(
                f'sam.model.global_attn_indexes must contain the last block, {found.depth - 1}, '
                f'not only {list(found.global_attn_indexes)}.'
            )
        return found

    @property
    def grid(self) -> int:
        """Number of patches along each side."""
        return self.image_size // self.patch

    def frame(self, size: tuple[int, int], side: int | None = None) -> tuple[int, int]:
        """Height and width of an image whose long side is resized to ``side``. Default: that of the input."""
        scale = (side or self.image_size) / max(size)
        return int(size[0] * scale + 0.5), int(size[1] * scale + 0.5)

    def network(self) -> nn.Module:
        """Builds timm's image encoder with random weights."""
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


#: The published models.
PUBLISHED = {
    'vit_b': SAMModel(768, 12, 12, (2, 5, 8, 11)),
    'vit_l': SAMModel(1024, 24, 16, (5, 11, 17, 23)),
    'vit_h': SAMModel(1280, 32, 16, (7, 15, 23, 31)),
}


def find_checkpoint(model: str | Mapping, checkpoint: str | os.PathLike | None) -> Path:
    """Finds the original checkpoint of a SAM: the given file, or the one in the weights folder."""
    source = sam_source(model) if isinstance(model, str) else None
    if checkpoint is None and source is None:
        raise TPAError('sam.model given as a dict has no published weights: set sam.checkpoint to a file.')
    path = local_path(checkpoint) if checkpoint is not None else source.locate() or source.target
    if not path.is_file():
        raise TPAError(
            f'SAM checkpoint not found: {path}. Download {source.origin if source else path.name} and save it there '
            '(by tpa weights download), or set sam.checkpoint (TPA_WEIGHTS sets another folder).'
        )
    return path
