"""TimmEncoder: any vision transformer of timm as the frozen dense encoder."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from typing import Annotated

import torch
from mmseg.registry import MODELS
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from timm.layers import Mlp
from timm.models.vision_transformer import Block, VisionTransformer
from timm.models.vision_transformer_sam import VisionTransformerSAM
from torch import Tensor, nn

from ..errors import TPAError
from ..layers.compiling import compiled
from ..layers.feed_forward import feed_forward, residual
from ..layers.position import RULES, PositionTable, rule_of_family
from ..layers.precision import PRECISION_OPTIONS
from ..layers.resize import resize
from ..options import AtLeastOne, Choice, one_of
from .base import Encoder
from .timm_models import build_network, full_name


@MODELS.register_module()
class TimmEncoder(Encoder):
    """Patch tokens after the final norm of a timm vision transformer (its ``forward_features`` without the prefix).

    Features of SAM are the output of its neck. SAM has one input size, to which every image is stretched.

    Args:
        model: A timm name (``vit_base_patch8_224.dino``), or a dict with the ``type`` of a timm class
            (``VisionTransformer`` unless given) and the arguments of its constructor.
        pretrained: True for the weights of the name's tag, from the weights folder or the hub; another tag; a file in
            timm's format or that of the original release; False for random weights.
        position: Rule that resizes the position table to the image's grid: a key of
            :data:`~tpa_mmseg.layers.position.RULES`, or ``'auto'`` for the rule of the model's family.
        mean: Statistics with which the network's input is normalized, in units of 0 to 1. Default: those of the
            weights, or ImageNet's for a dict.
        std: The same for the standard deviation.
        short_side: As in :class:`Encoder`.
        max_tokens: As in :class:`Encoder`.
        precision: As in :class:`Encoder`.
        compile: Run the blocks by torch.compile; where that fails, without, after a warning.
    """

    def __init__(
        self,
        model: str | dict = 'vit_base_patch14_dinov2.lvd142m',
        pretrained: bool | str | os.PathLike = True,
        position: Annotated[str, Choice(('auto', *RULES))] = 'auto',
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        short_side: AtLeastOne | None = None,
        max_tokens: AtLeastOne | None = None,
        precision: Annotated[str, Choice(PRECISION_OPTIONS)] = 'auto',
        compile: bool = False,
    ) -> None:
        if position not in ('auto', *RULES):
            raise TPAError(f'encoder.position must be one of auto, {", ".join(RULES)}, not {position!r}.')
        network = build_network(model, pretrained)
        name = full_name(network)
        statistics = getattr(network, 'pretrained_cfg', {})
        super().__init__(
            network,
            dim=network.num_features,
            patch=network.patch_embed.feat_ratio(),
            mean=mean or statistics.get('mean', IMAGENET_DEFAULT_MEAN),
            std=std or statistics.get('std', IMAGENET_DEFAULT_STD),
            short_side=short_side,
            max_tokens=max_tokens,
            precision=precision,
        )
        # From a config file a dict comes as mmengine's own kind of dict; a fingerprint is plain JSON.
        self.model = name or json.loads(json.dumps(model, default=str))
        self.fixed_size = tuple(network.patch_embed.img_size) if isinstance(network, VisionTransformerSAM) else None
        for option, value in (('short_side', short_side), ('max_tokens', max_tokens)):
            if self.fixed_size and value:
                raise TPAError(f'{name or "SAM"} has a fixed input size, {self.fixed_size}: remove encoder.{option}.')
        self.position = self._position_rule(position, name)
        self._run_block = compiled(run_block) if one_of('encoder.compile', compile, (False, True)) else run_block
        if compile and self._table is None:
            warnings.warn(f'encoder.compile=True has no effect on {name or type(network).__name__}.', stacklevel=2)

    def _position_rule(self, position: str, name: str | None) -> str:
        """Resolves ``'auto'`` and creates the table of a plain vision transformer; other networks resize their own."""
        rule = (rule_of_family(name) if name else 'timm') if position == 'auto' else position
        network = self.network
        self._table = None
        if type(network) is VisionTransformer and network.pos_embed is not None:
            prefix = 0 if network.no_embed_class else network.num_prefix_tokens
            self._table = PositionTable(rule, network.patch_embed.grid_size, prefix)
        elif rule != 'timm':
            raise TPAError(
                f'{name or type(network).__name__} has no position table to resize: remove encoder.position={rule!r}.'
            )
        return rule

    def input_size(self, height: int, width: int) -> tuple[int, int]:
        return self.fixed_size or super().input_size(height, width)

    def dense(self, images: Tensor) -> Tensor:
        """As in :class:`Encoder`. Images for SAM may have any size; they are stretched to its input size."""
        return super().dense(resize(images, self.fixed_size) if self.fixed_size else images)

    def encode(self, images: Tensor) -> Tensor:
        if self.fixed_size:
            return self.network.forward_features(images)
        grid = (images.shape[2] // self.patch, images.shape[3] // self.patch)
        tokens = self._tokens(self.embed(images, grid)) if self._table else self.network.forward_features(images)
        patches = tokens[:, self.network.num_prefix_tokens :]
        return patches.transpose(1, 2).unflatten(2, grid)

    def embed(self, images: Tensor, grid: tuple[int, int]) -> Tensor:
        """Returns the tokens that enter the blocks, with our position table: (B, prefix + h * w, D)."""
        vit = self.network
        table = self._table.at(vit.pos_embed, grid)
        patches = vit.patch_embed(images).flatten(1, 2)
        prefix = [token.expand(len(images), -1, -1) for token in (vit.cls_token, vit.reg_token) if token is not None]
        if vit.no_embed_class:
            tokens = torch.cat([*prefix, patches + table], dim=1)
        else:
            tokens = torch.cat([*prefix, patches], dim=1) + table
        return vit.norm_pre(tokens)

    def _tokens(self, tokens: Tensor) -> Tensor:
        """Runs the rest of timm's ``forward_features``."""
        for block in self.network.blocks:
            tokens = self._run_block(block, tokens)
        return self.network.norm(tokens)

    def fingerprint(self) -> dict:
        return {**super().fingerprint(), 'model': self.model, 'position': self.position}


def run_block(block: nn.Module, tokens: Tensor) -> Tensor:
    """Runs a frozen block of a vision transformer, (B, T, D) -> (B, T, D), the usual kind with little memory."""
    if type(block) is not Block or type(block.mlp) is not Mlp or not isinstance(block.mlp.norm, nn.Identity):
        return block(tokens)
    mlp = block.mlp
    tokens = residual(tokens, block.ls1(block.attn(block.norm1(tokens))))
    return residual(tokens, block.ls2(feed_forward(tokens, block.norm2, mlp.fc1, mlp.act, mlp.fc2)))
