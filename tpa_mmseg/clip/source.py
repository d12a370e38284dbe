"""Where a CLIP model comes from: its config, its weights, and its two towers, built one at a time."""

from __future__ import annotations

import copy
import difflib
import logging
import warnings
import zipfile
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cached_property, lru_cache
from pathlib import Path

import open_clip
import torch
from mmengine.logging import print_log
from open_clip.model import convert_to_custom_text_state_dict
from open_clip.transformer import ResidualAttentionBlock, VisionTransformer
from torch import Tensor, nn

from ..errors import TPAError
from ..layers.precision import PRECISIONS
from ..weights.files import load_into, load_state_dict, local_path
from ..weights.sources import clip_source
from .token_rows import KnownWords, expand_rows, stored_rows
from .tower import CLIPTower

# OpenAI's own files carry these numbers among their weights.
_OPENAI_MARKS = ('input_resolution', 'context_length', 'vocab_size')

# What files hold beyond the text tower; masks are made anew.
_BEYOND_TEXT = ('logit_', 'attn_mask', 'text.attn_mask', *_OPENAI_MARKS)

# Stand in for the tower that is not wanted, so that its real size costs nothing.
_NO_VISION = {'image_size': 32, 'patch_size': 32, 'layers': 1, 'width': 64}
_NO_TEXT = {'context_length': 8, 'vocab_size': 8, 'width': 64, 'heads': 1, 'layers': 1}


class CLIPSpec:
    """A CLIP model that is read but not built.

    Args:
        model: Name of an open_clip model, or a dict in the shape of open_clip's own configs (``embed_dim``,
            ``vision_cfg``, ``text_cfg``, ``quick_gelu``, ...).
        pretrained: An open_clip tag such as ``'openai'``, a file (safetensors, a PyTorch state dict, or OpenAI's
            original archive), or None for random weights. A tag is looked for in the weights folder as
            ``<model>.<tag>.safetensors`` (or .pt, .bin) before it is downloaded. A file may hold only some rows of the
            token embedding, see :mod:`.token_rows`.
        precision: ``'float32'``, or ``'float16'`` or ``'bfloat16'`` by autocast.
    """

    def __init__(self, model: str | Mapping, pretrained: str | None = None, precision: str = 'float32') -> None:
        if precision not in PRECISIONS:
            raise TPAError(f'clip.precision must be one of {", ".join(PRECISIONS)}, not {precision!r}.')
        self.precision = precision
        self.name = model.replace('/', '-') if isinstance(model, str) else 'a private CLIP model'
        self.config = _named_config(self.name) if isinstance(model, str) else _private_config(model)
        self.path: Path | None = None
        self._tag = {}
        if pretrained is not None:
            self._locate(str(pretrained), isinstance(model, str))

    @classmethod
    def of(cls, clip: Mapping) -> CLIPSpec:
        """Reads the ``clip`` entry of a config."""
        unknown = sorted(set(clip) - {'model', 'pretrained', 'precision'})
        if unknown or 'model' not in clip:
            raise TPAError(f'clip takes a model, pretrained and precision, not {unknown or "no model"}.')
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
        """Whether the activation is QuickGELU. The weights decide: open_clip itself only warns of a mismatch."""
        wanted = bool(self._tag.get('quick_gelu')) or self._from_openai
        if wanted and not self.config.get('quick_gelu', False):
            print_log(f'{self.name}: these weights want QuickGELU, so QuickGELU it is.', 'current', logging.INFO)
        return wanted or self.config.get('quick_gelu', False)

    def tower(self, position: str = 'dino') -> CLIPTower:
        """The visual tower. Args: position: name of its position-embedding rule."""
        visual = self._build(text_cfg=_NO_TEXT).visual
        if not isinstance(visual, VisionTransformer) or visual.attn_pool is not None or visual.proj is None:
            raise TPAError(f'The image tower of {self.name} is not a plain vision transformer: choose another model.')
        if not all(type(block) is ResidualAttentionBlock for block in visual.transformer.resblocks):
            raise TPAError(f'The blocks of {self.name} are not standard attention blocks: choose another model.')
        if self.path is not None:
            visual.to_empty(device='cpu')
            prefix = 'visual.'
            state = {name[len(prefix) :]: v for name, v in self._state.items() if name.startswith(prefix)}
            load_into(visual, state, self.path, model=self.name)
        return CLIPTower(visual, position, self.precision)

    def text_tower(self) -> nn.Module:
        """A float32 model with ``encode_text`` and without an image tower."""
        if 'hf_model_name' in self.config['text_cfg']:
            raise TPAError(f'The text tower of {self.name} is not one of open_clip: give text_features instead.')
        model = self._build(vision_cfg=_NO_VISION)
        del model.visual, model.logit_scale, model.logit_bias
        if self.path is not None:
            state = {name: v for name, v in self._state.items() if not name.startswith('visual.')}
            if not state:
                raise TPAError(f'{self.path} holds no text tower: bring the whole model, or give text_features.')
            if isinstance(model, open_clip.CustomTextCLIP):
                state = convert_to_custom_text_state_dict(state)
            state = expand_rows(state, model.vocab_size, self.path)
            model.to_empty(device='cpu')
            load_into(model, state, self.path, unused=_BEYOND_TEXT, model=self.name)
            _fill_causal_masks(model)
        return model.requires_grad_(False).eval()

    def tokenizer(self) -> open_clip.SimpleTokenizer | KnownWords:
        """Turns strings into (n, context length) tokens, and refuses words that the file has no embedding for."""
        rows = None if self.path is None else stored_rows(self._state)
        tokenizer = self._tokenizer()
        return tokenizer if rows is None else KnownWords(tokenizer, rows, self.path)

    def _tokenizer(self) -> open_clip.SimpleTokenizer:
        if self.name in open_clip.list_models():
            return _named_tokenizer(self.name)
        text = self.config['text_cfg']
        return _simple_tokenizer(text.get('context_length', 77), **text.get('tokenizer_kwargs', {}))

    def text_settings(self) -> dict:
        """All that decides the numbers of the text tower beside its weights."""
        return {'text_cfg': self.config['text_cfg'], 'quick_gelu': self.quick_gelu}

    def _build(self, **replaced: dict) -> nn.Module:
        """The open_clip model with one tower replaced, without memory behind it where weights will be loaded."""
        config = {**copy.deepcopy(self.config), **replaced, 'quick_gelu': self.quick_gelu}
        kind = open_clip.CustomTextCLIP if config.pop('custom_text', False) else open_clip.CLIP
        if 'multimodal_cfg' in config:
            raise TPAError(f'{self.name} is not a plain CLIP model: choose another model.')
        # A reduced precision makes open_clip take LayerNorms that compute in float32 on every device.
        reduced = 'vision_cfg' not in replaced and self.precision != 'float32'
        dtype = PRECISIONS[self.precision] if reduced else None
        with nullcontext() if self.path is None else torch.device('meta'):
            return kind(**config, cast_dtype=dtype)

    def _locate(self, pretrained: str, named: bool) -> None:
        """Finds the file of the weights, and what a tag says about them."""
        self._tag = open_clip.get_pretrained_cfg(self.name, pretrained) if named else {}
        if self._tag:
            self.path = clip_source(self.name, pretrained).download()
            return
        self.path = local_path(pretrained)
        if not self.path.is_file():
            tags = open_clip.list_pretrained_tags_by_model(self.name)
            known = f'a tag of {self.name} ({", ".join(tags)}) or ' if tags else ''
            raise TPAError(f'clip.pretrained must be {known}a weights file, and {pretrained!r} is not.')

    @property
    def _from_openai(self) -> bool:
        """Whether a file is OpenAI's, as told by its path or by what is in it."""
        if self.path is None or self._tag:
            return False
        # On the hub the folder has the name: vit_base_patch16_clip_224.openai/.../open_clip_model.safetensors.
        named = 'openai' in self.path.name.lower() or any(part.endswith('.openai') for part in self.path.parts)
        return named or _is_archive(self.path) or _OPENAI_MARKS[0] in self._state

    @cached_property
    def _state(self) -> dict[str, Tensor]:
        return _load_archive(self.path) if _is_archive(self.path) else load_state_dict(self.path)


def _named_config(name: str) -> dict:
    config = open_clip.get_model_config(name) if name in open_clip.list_models() else None
    if config is None:
        near = difflib.get_close_matches(name, open_clip.list_models(), n=3, cutoff=0.5)
        hint = f'did you mean {", ".join(near)}?' if near else 'open_clip.list_models() names them all.'
        raise TPAError(f'open_clip has no model {name!r}: {hint}')
    return config


# Reading the vocabulary takes most of a second, and users change their words often.
@lru_cache(maxsize=4)
def _named_tokenizer(name: str) -> open_clip.SimpleTokenizer:
    return open_clip.get_tokenizer(name)


@lru_cache(maxsize=4)
def _simple_tokenizer(context_length: int, **options) -> open_clip.SimpleTokenizer:
    return open_clip.SimpleTokenizer(context_length=context_length, **options)


def _private_config(config: Mapping) -> dict:
    missing = [key for key in ('embed_dim', 'vision_cfg', 'text_cfg') if key not in config]
    if missing:
        raise TPAError(f"clip.model as a dict follows open_clip's configs, but {', '.join(missing)} is missing.")
    # mmengine's ConfigDict answers missing attributes in its own way; open_clip expects plain dicts.
    return {key: dict(value) if isinstance(value, Mapping) else value for key, value in config.items()}


def _is_archive(path: Path) -> bool:
    """Whether a file is a TorchScript archive, the form in which OpenAI published its models."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any('/code/' in name for name in archive.namelist())


def _load_archive(path: Path) -> dict[str, Tensor]:
    """The weights of a TorchScript archive. Its reader knows tensors and numbers only, no Python objects."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', FutureWarning)  # TorchScript is deprecated, OpenAI's files stay what they are
        state = torch.jit.load(path, map_location='cpu').state_dict()
    return {name: tensor for name, tensor in state.items() if name not in _OPENAI_MARKS}


def _fill_causal_masks(model: nn.Module) -> None:
    """Makes anew what no file holds: the masks that let a token see only those before it."""
    for module in model.modules():
        mask = getattr(module, 'attn_mask', None)
        if isinstance(mask, Tensor):
            module.attn_mask = torch.full_like(mask, float('-inf')).triu_(1)
