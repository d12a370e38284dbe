"""Text features: one unit vector per class name, computed once and cached on disk."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import open_clip
import safetensors
import safetensors.torch
import torch
import torch.nn.functional as F
from mmengine.device import get_device
from mmengine.dist import is_main_process
from mmengine.logging import print_log
from torch import Tensor, nn

from ..console import track
from ..errors import TPAError
from ..io import atomic_write
from ..weights.files import digest
from .source import CLIPSpec

#: The 80 prompts that OpenAI used for ImageNet.
IMAGENET_TEMPLATES = tuple(template('{}') for template in open_clip.OPENAI_IMAGENET_TEMPLATES)

_PROMPTS_PER_BATCH = 256
_KEY = 'text_features'


def cache_dir() -> Path:
    """Returns the folder of cached features: ``$TPA_CACHE/text``, or ``~/.cache/tpa_mmseg/text``."""
    return Path(os.environ.get('TPA_CACHE') or Path.home() / '.cache' / 'tpa_mmseg') / 'text'


def query_features(source: CLIPSpec, queries: Sequence[str], templates: Sequence[str] = IMAGENET_TEMPLATES) -> Tensor:
    """Returns the features of all queries, from the cache if model, templates and names are the same.

    Features of random weights are never cached.

    Args:
        source: The CLIP model.
        queries: Q names.
        templates: Sentences with ``{}`` for the name.

    Returns:
        (Q, E) float32 unit vectors on the CPU: for each query the normalized mean of its prompts' unit vectors.
    """
    return _cached_features(source, queries, templates, merged=True)


def template_features(source: CLIPSpec, queries: Sequence[str], templates: Sequence[str]) -> Tensor:
    """Returns the features of all queries in every template, (T, Q, E). Args: as for :func:`query_features`."""
    return _cached_features(source, queries, templates, merged=False).transpose(0, 1).contiguous()


def _cached_features(source: CLIPSpec, queries: Sequence[str], templates: Sequence[str], merged: bool) -> Tensor:
    wrong = [template for template in templates if '{}' not in template]
    if wrong or not templates:
        found = repr(wrong[0]) if wrong else 'no template'
        raise TPAError(
            f"templates must contain {{}} in place of the class name, e.g. 'a photo of a {{}}.', got {found}."
        )
    tower = source.text_tower()
    path = None
    if source.path is not None:
        made_with = [
            digest(tower),
            source.text_settings(),
            list(templates),
            list(queries),
            *([] if merged else ['each']),
        ]
        name = hashlib.sha256(json.dumps(made_with, sort_keys=True).encode()).hexdigest()
        path = cache_dir() / f'{name}.safetensors'
        cached = _read_cache(path, (len(queries),) if merged else (len(queries), len(templates)))
        if cached is not None:
            return cached
    features = encode(tower.to(get_device()), source.tokenizer(), queries, templates)
    features = F.normalize(features.mean(1), dim=-1) if merged else features
    if path is not None:
        _write_cache(path, features)
    return features


@torch.no_grad()
def encode(
    tower: nn.Module, tokenizer: open_clip.SimpleTokenizer, queries: Sequence[str], templates: Sequence[str]
) -> Tensor:
    """Encodes every prompt of every query: (Q, T, E) unit vectors on the CPU.

    Args:
        tower: The text tower, from :meth:`CLIPSpec.text_tower`, on the device to use.
        tokenizer: Its tokenizer.
        queries: Q names.
        templates: Sentences with ``{}`` for the name.
    """
    tokens = tokenizer([template.replace('{}', name) for name in queries for template in templates])
    tokens = _shorten(tower, tokens)
    device = next(tower.parameters()).device
    batches = tokens.split(_PROMPTS_PER_BATCH)
    progress = track(batches, 'Encoding class names', unit='batches', transient=True, show=is_main_process())
    prompts = torch.cat([F.normalize(tower.encode_text(batch.to(device)).float(), dim=-1).cpu() for batch in progress])
    return prompts.unflatten(0, (len(queries), len(templates)))


def read_features(source: Tensor | np.ndarray | str | os.PathLike) -> tuple[Tensor, list[int] | None]:
    """Reads ready-made query features.

    Args:
        source: (Q, E) array, or an .npz or .safetensors file with the array ``text_features`` and, optionally, the
            class of each query as ``query_to_class``.

    Returns:
        (Q, E) float32 unit vectors, and the class of each query if the file has it.
    """
    classes = None
    if isinstance(source, (str, os.PathLike)):
        arrays = _read_arrays(Path(source))
        if _KEY not in arrays:
            raise TPAError(f'{source} has no array {_KEY!r}, only {", ".join(sorted(arrays))}: rename the right one.')
        if 'query_to_class' in arrays:
            classes = [int(label) for label in arrays['query_to_class']]
        source = arrays[_KEY]
    features = torch.as_tensor(source).detach().cpu().float()
    if features.ndim != 2 or not torch.isfinite(features).all():
        raise TPAError(
            f'text_features must be finite and of shape (queries, channels), got shape {tuple(features.shape)}.'
        )
    return F.normalize(features, dim=-1), classes


def _read_arrays(path: Path) -> dict[str, np.ndarray | Tensor]:
    try:
        if path.suffix == '.npz':
            with np.load(path) as archive:
                return dict(archive)
        return safetensors.torch.load_file(path)
    except Exception as error:  # a damaged file can raise almost anything
        raise TPAError(f'Cannot read text features from {path}: give an existing .npz or .safetensors file.') from error


def _write_cache(path: Path, features: Tensor) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.chmod(0o700)  # of an older version, or with another umask
        with atomic_write(path) as file:
            file.write(safetensors.torch.save({_KEY: features}, metadata={'sha256': _checksum(features)}))
    except (TPAError, OSError) as error:  # without a cache a run takes longer, but it goes on
        print_log(f'Text features were not cached: {error}', 'current', logging.WARNING)


def _read_cache(path: Path, counts: tuple[int, ...]) -> Tensor | None:
    """Reads cached features; None if there are none, or none that can be trusted. Args: counts: all but channels."""
    try:
        if path.stat().st_uid != path.parent.stat().st_uid or path.parent.stat().st_mode & 0o022:
            return None  # others can write here
        with safetensors.safe_open(path, framework='pt') as file:
            features = file.get_tensor(_KEY)
            intact = file.metadata()['sha256'] == _checksum(features)
        sound = features.dtype == torch.float32 and features.shape[:-1] == counts and bool(features.isfinite().all())
        return features if intact and sound else None
    except Exception:  # missing, cut off or damaged: computed again either way
        return None


def _checksum(features: Tensor) -> str:
    return hashlib.sha256(features.contiguous().numpy().tobytes()).hexdigest()


def _shorten(tower: nn.Module, tokens: Tensor) -> Tensor:
    """Cuts the context to the longest prompt. In a causal tower a feature does not depend on what follows its end."""
    causal = isinstance(tower, open_clip.CLIP) and tower.text_pool_type == 'argmax' and tower.attn_mask is not None
    if not causal:
        return tokens
    length = int(tokens.argmax(-1).max()) + 1
    tower.positional_embedding = nn.Parameter(tower.positional_embedding[:length], requires_grad=False)
    tower.attn_mask = tower.attn_mask[:length, :length]
    return tokens[:, :length]
