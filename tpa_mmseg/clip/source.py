"""CLIPSpec: the config and weights of a CLIP model, and its two towers, built one at a time."""

from __future__ import annotations

import copy
import difflib
import logging
import os
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated

import open_clip
import torch
from mmengine.logging import print_log
from open_clip.model import convert_to_custom_text_state_dict
from open_clip.transformer import ResidualAttentionBlock, VisionTransformer
from torch import Tensor, nn

from ..errors import TPAError
from ..layers.precision import PRECISION_OPTIONS
from ..options import Choice, one_of, unknown_option
from ..weights.files import load_into, load_state_dict, local_path
from ..weights.sources import clip_source
from .tokenizer import WordTokenizer, stored_words
from .tower import CLIPTower

# Entries of OpenAI's own files that are not weights.
_OPENAI_MARKS = ('input_resolution', 'context_length', 'vocab_size')

# Entries of files beyond the text tower; masks are computed.
_BEYOND_TEXT = ('logit_', 'attn_mask', 'text.attn_mask', *_OPENAI_MARKS)

# Take the place of the tower that is not built, so that its real size costs nothing.
_NO_VISION = {'image_size': 32, 'patch_size': 32, 'layers': 1, 'width': 64}
_NO_TEXT = {'context_length': 8, 'vocab_size': 8, 'width': 64, 'heads': 1, 'layers': 1}


class CLIPSpec:
    """The description of a CLIP model, which builds one tower at a time.

    Args:
        model: Name of an open_clip model, or a dict in the shape of open_clip's own configs (``embed_dim``,
            ``vision_cfg``, ``text_cfg``, ``quick_gelu``, ...).
        pretrained: An open_clip tag, e.g. ``'openai'``, a file (safetensors or a PyTorch state dict),
            or None for random weights. A tag is looked for in the weights folder as
            ``<model>.<tag>.safetensors`` (or .pt, .bin) before it is downloaded. A file may name the few words it was
            trained with, see :mod:`.tokenizer`.
        precision: ``'float32'``, ``'float16'`` or ``'bfloat16'`` by autocast, or ``'auto'``: float16 on CUDA, as the
            original implementations of hosts compute, and float32 elsewhere.
        quick_gelu: Activation of both towers: True for QuickGELU, False for GELU, None for that of the tag or, without
            a tag, of the model. Weights of OpenAI, MetaCLIP and DFN need QuickGELU. A tag implies it; if you give a
            file, state it here or by the model's name (``'ViT-B-16-quickgelu'``).
        compile: Run the visual tower by torch.compile; where that fails, without, after a warning.
    """

    def __init__(
        self,
        model: str | Mapping,
        pretrained: str | os.PathLike | None = None,
        precision: Annotated[str, Choice(PRECISION_OPTIONS)] = 'auto',
        quick_gelu: bool | None = None,
        compile: bool = False,
    ) -> None:
        self.precision = one_of('clip.precision', precision, PRECISION_OPTIONS)
        self.compile = one_of('clip.compile', compile, (False, True))
        self._stated_gelu = one_of('clip.quick_gelu', quick_gelu, (None, True, False))
        self.name = model.replace('/', '-') if isinstance(model, str) else 'a private CLIP model'
        self.config = _named_config(self.name) if isinstance(model, str) else _private_config(model)
        self.path: Path | None = None
        self._tag = {}
        if pretrained is not None:
            self._locate(str(pretrained), isinstance(model, str))

    @classmethod
    def of(cls, clip: Mapping) -> CLIPSpec:
        """Reads the ``clip`` entry of a config."""
        known = ('model', 'pretrained', 'precision', 'quick_gelu', 'compile')
        for key in set(clip) - set(known):
            raise unknown_option('clip', key, known)
        if 'model' not in clip:
            raise TPAError("clip has no model: set one, e.g. clip=dict(model='ViT-B-16', pretrained='openai').")
        return cls(**clip)

    @property
    def mean(self) -> tuple[float, ...]:
        """RGB statistics of the training images, in units of 0 to 1."""
        return tuple(self._tag.get('mean', open_clip.OPENAI_DATASET_MEAN))

    @property
    def std(self) -> tuple[float, ...]:
        """As :attr:`mean`, the standard deviation."""
        return tuple(self._tag.get('std', open_clip.OPENAI_DATASET_STD))

    @cached_property
    def quick_gelu(self) -> bool:
        """Whether the activation is QuickGELU. open_clip itself only warns if weights and activation do not match."""
        if self._stated_gelu is not None:
            return self._stated_gelu
        if self.config.get('quick_gelu', False):
            return True
        if self._tag.get('quick_gelu'):
            print_log(f'{self.name}: using QuickGELU, as these weights require.', 'current', logging.INFO)
            return True
        if self.path is not None and not self._tag:
            self._check_activation()
        return False

    def _check_activation(self) -> None:
        """Refuses OpenAI's own files without QuickGELU, and warns if a file may be of either kind."""
        twin = f'{self.name}-quickgelu'
        twin = twin if twin in open_clip.list_models() else None
        remedy = 'set clip.quick_gelu=True' + (f', or clip.model={twin!r}' if twin else '')
        if _OPENAI_MARKS[0] in self._state:
            raise TPAError(
                f'{self.path} has weights of OpenAI, which need QuickGELU, but {self.name} has GELU: {remedy}.'
            )
        if twin:
            warnings.warn(
                f'{self.name} has GELU. If the weights in {self.path} were trained with QuickGELU (OpenAI, MetaCLIP, '
                f'DFN), {remedy}; otherwise set clip.quick_gelu=False.',
                stacklevel=2,
            )

    def tower(self, position: str = 'dino') -> CLIPTower:
        """The visual tower. Args: position: name of its position-embedding rule."""
        visual = self._build(text_cfg=_NO_TEXT).visual
        if not isinstance(visual, VisionTransformer) or visual.attn_pool is not None or visual.proj is None:
            raise TPAError(
                f'The image tower of {self.name} is not a plain vision transformer: choose another clip.model.'
            )
        if not all(type(block) is ResidualAttentionBlock for block in visual.transformer.resblocks):
            raise TPAError(f'The blocks of {self.name} are not standard attention blocks: choose another clip.model.')
        if self.path is not None:
            visual.to_empty(device='cpu')
            prefix = 'visual.'
            state = {name[len(prefix) :]: v for name, v in self._state.items() if name.startswith(prefix)}
            load_into(visual, state, self.path, model=self.name)
        return CLIPTower(visual, position, self.precision, self.compile)

    def text_tower(self) -> nn.Module:
        """A float32 model with ``encode_text`` and without an image tower."""
        if 'hf_model_name' in self.config['text_cfg']:
            raise TPAError(f'The text tower of {self.name} is not one of open_clip: set text_features instead.')
        model = self._build(vision_cfg=_NO_VISION)
        del model.visual, model.logit_scale, model.logit_bias
        if self.path is not None:
            state = {name: v for name, v in self._state.items() if not name.startswith('visual.')}
            if not state:
                raise TPAError(f'{self.path} has no text tower: use a file of the whole model, or set text_features.')
            if isinstance(model, open_clip.CustomTextCLIP):
                state = convert_to_custom_text_state_dict(state)
            model.to_empty(device='cpu')
            load_into(model, state, self.path, unused=_BEYOND_TEXT, model=self.name)
            _fill_causal_masks(model)
        return model.requires_grad_(False).eval()

    def tokenizer(self) -> open_clip.SimpleTokenizer | WordTokenizer:
        """Returns what turns strings into (n, context length) tokens."""
        text = self.config['text_cfg']
        length = text.get('context_length', 77)
        words = None if self.path is None else stored_words(self.path)
        if words is not None:
            return WordTokenizer(words, text['vocab_size'], length, self.path.name)
        if self.name in open_clip.list_models():
            return _named_tokenizer(self.name)
        return _simple_tokenizer(length, **text.get('tokenizer_kwargs', {}))

    def text_settings(self) -> dict:
        """Everything besides the weights that decides the features of the text tower."""
        return {'text_cfg': self.config['text_cfg'], 'quick_gelu': self.quick_gelu}

    def _build(self, **replaced: dict) -> nn.Module:
        """Builds the open_clip model with one tower replaced; without memory if weights will be loaded."""
        config = {**copy.deepcopy(self.config), **replaced, 'quick_gelu': self.quick_gelu}
        kind = open_clip.CustomTextCLIP if config.pop('custom_text', False) else open_clip.CLIP
        if 'multimodal_cfg' in config:
            raise TPAError(f'{self.name} is not a plain CLIP model: choose another clip.model.')
        # With a reduced precision open_clip takes LayerNorms that compute in float32 on every device. Which type it is
        # does not matter to it, and tokens in float32 get the same numbers.
        reduced = 'vision_cfg' not in replaced and self.precision != 'float32'
        dtype = torch.float16 if reduced else None
        with nullcontext() if self.path is None else torch.device('meta'):
            return kind(**config, cast_dtype=dtype)

    def _locate(self, pretrained: str, named: bool) -> None:
        """Finds the file of the weights and the settings of a tag."""
        self._tag = open_clip.get_pretrained_cfg(self.name, pretrained) if named else {}
        if self._tag:
            self.path = clip_source(self.name, pretrained).download()
            return
        self.path = local_path(pretrained)
        if not self.path.is_file():
            tags = open_clip.list_pretrained_tags_by_model(self.name)
            known = f'a tag of {self.name} ({", ".join(tags)}) or ' if tags else ''
            raise TPAError(f'clip.pretrained must be {known}an existing weights file, not {pretrained!r}.')

    @cached_property
    def _state(self) -> dict[str, Tensor]:
        return load_state_dict(self.path)


def _named_config(name: str) -> dict:
    config = open_clip.get_model_config(name) if name in open_clip.list_models() else None
    if config is None:
        near = difflib.get_close_matches(name, open_clip.list_models(), n=3, cutoff=0.5)
        hint = f'Did you mean {", ".join(near)}?' if near else 'open_clip.list_models() lists them all.'
        raise TPAError(f'open_clip has no model {name!r}. {hint}')
    return config


# Reading the vocabulary takes most of a second, and users change their classes often.
@lru_cache(maxsize=4)
def _named_tokenizer(name: str) -> open_clip.SimpleTokenizer:
    return open_clip.get_tokenizer(name)


@lru_cache(maxsize=4)
def _simple_tokenizer(context_length: int, **options) -> open_clip.SimpleTokenizer:
    return open_clip.SimpleTokenizer(context_length=context_length, **options)


def _private_config(config: Mapping) -> dict:
    missing = [key for key in ('embed_dim', 'vision_cfg', 'text_cfg') if key not in config]
    if missing:
        raise TPAError(
            f"Missing in clip.model: {', '.join(missing)}. A dict has the keys of open_clip's own model configs."
        )
    # mmengine's ConfigDict treats missing attributes in its own way; open_clip expects plain dicts.
    return {key: dict(value) if isinstance(value, Mapping) else value for key, value in config.items()}


def _fill_causal_masks(model: nn.Module) -> None:
    """Computes what no file contains: the masks that let a token attend only to those before it."""
    for module in model.modules():
        mask = getattr(module, 'attn_mask', None)
        if isinstance(mask, Tensor):
            module.attn_mask = torch.full_like(mask, float('-inf')).triu_(1)
