"""SAM's image encoder: its embedding of an image, and the attention of its last block."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from timm.models.vision_transformer_sam import Block
from torch import Tensor, nn

from ..core.tables import to_device
from ..encoders.timm_models import load_file
from ..layers.compiling import compiled
from ..layers.precision import PRECISION_OPTIONS, autocast_to, used_precision
from ..options import Choice, one_of, unknown_option
from .attention import GlobalAttention
from .model import PUBLISHED, SAMModel, find_checkpoint

# Statistics of the pixels, in units of 0 to 255.
_MEAN = (123.675, 116.28, 103.53)
_STD = (58.395, 57.12, 57.375)


@dataclass
class SAMFeatures:
    """SAM's features of an image.

    Attributes:
        attention: Of the last block, in float32, over all patches of the square input.
        embedding: (1, prompt_dim, n, n) float32 output of the encoder; None if it was not computed.
        image_size: Height and width of the image.
        frame: Height and width of the image inside the square input; the rest is padding.
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
        precision: ``'float32'``, ``'float16'`` or ``'bfloat16'`` by autocast, or ``'auto'``: float16 on CUDA, as in
            Trident's original implementation, and float32 elsewhere.
        compile: Run the windowed blocks, which are most of them, by torch.compile; where that fails, without.
    """

    def __init__(
        self,
        model: Annotated[str, Choice(PUBLISHED)] | Annotated[dict, SAMModel] = 'vit_b',
        checkpoint: str | os.PathLike | bool | None = None,
        precision: Annotated[str, Choice(PRECISION_OPTIONS)] = 'auto',
        compile: bool = False,
    ) -> None:
        super().__init__()
        self.model = SAMModel.of(model)
        self._precision = one_of('sam.precision', precision, PRECISION_OPTIONS)
        self._run_block = (
            compiled(_windowed_block) if one_of('sam.compile', compile, (False, True)) else _windowed_block
        )
        self.path = None if checkpoint is False else find_checkpoint(model, checkpoint)
        self.network = self.model.network().requires_grad_(False).eval()
        if self.path is not None:
            load_file(self.network, self.path)
        for name, values in (('mean', _MEAN), ('std', _STD)):
            self.register_buffer(name, torch.tensor(values).view(3, 1, 1), persistent=False)

    @classmethod
    def of(cls, sam: Mapping | None) -> SAMEncoder:
        """Reads the ``sam`` entry of a config."""
        known = ('model', 'checkpoint', 'precision', 'compile')
        for key in set(sam or ()) - set(known):
            raise unknown_option('sam', key, known)
        return cls(**(sam or {}))

    @property
    def precision(self) -> str:
        """The type in which the network computes where it is now."""
        return used_precision(self._precision, self.mean.device, 'float16')

    @torch.no_grad()
    def forward(self, image: np.ndarray, embed: bool) -> SAMFeatures:
        """Computes the features of an image.

        Args:
            image: (H, W, 3) uint8 RGB.
            embed: Compute the embedding, which prompts need, as well.
        """
        frame = self.model.frame(image.shape[:2])
        *blocks, last = self.network.blocks
        with autocast_to(self.mean.device, self.precision):
            tokens = self.network.patch_embed(self.prepare(image, frame)) + self.network.pos_embed
            # timm makes indices of position tables on the default device: from a CPU, each would wait for the GPU.
            with self.mean.device:
                for block in blocks:
                    tokens = (self._run_block if block.window_size else _global_block)(block, tokens)
            attention = GlobalAttention.of(last.attn, last.norm1(tokens))
            embedding = None
            if embed:
                tokens = _global_block(last, tokens, attention)
                embedding = self.network.neck(tokens.permute(0, 3, 1, 2)).float()
        return SAMFeatures(attention.float(), embedding, image.shape[:2], frame)

    def prepare(self, image: np.ndarray, frame: tuple[int, int]) -> Tensor:
        """Returns the (1, 3, n, n) normalized input, padded with zeros on the right and below."""
        resized = np.asarray(Image.fromarray(image).resize(frame[::-1], Image.Resampling.BILINEAR))
        pixels = to_device(resized, str(self.mean.device)).permute(2, 0, 1).float()
        side = self.model.image_size
        return F.pad((pixels - self.mean) / self.std, (0, side - frame[1], 0, side - frame[0]))[None]


def _windowed_block(block: Block, tokens: Tensor) -> Tensor:
    """A block of timm's SAM with attention inside windows: (1, H, W, D) tokens -> (1, H, W, D)."""
    return block(tokens)


def _global_block(block: Block, tokens: Tensor, attention: GlobalAttention | None = None) -> Tensor:
    """A block of timm's SAM with attention over all patches: (1, H, W, D) tokens -> (1, H, W, D)."""
    attention = attention or GlobalAttention.of(block.attn, block.norm1(tokens))
    tokens = tokens + block.attn.proj(attention.mix())
    return tokens + block.mlp(block.norm2(tokens))
