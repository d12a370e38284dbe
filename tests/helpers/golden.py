"""Reference numbers of the original implementations, and the tiny models they were made with.

A compact selection lies in ``tests/golden``. Where the environment variable TPA_GOLDEN names a folder with more of
them, those are checked as well.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import safetensors.torch
import torch

COMMITTED = Path(__file__).parents[1] / 'golden'

TOLERANCE = {'atol': 1e-4, 'rtol': 0}


def golden_files(folder: str, pattern: str) -> list[Path]:
    """The files of a folder of golden numbers that match a pattern, those of TPA_GOLDEN first."""
    roots = [Path(root) for root in (os.environ.get('TPA_GOLDEN'), COMMITTED) if root]
    found: dict[str, Path] = {}
    for root in roots:
        for path in sorted((root / folder).glob(pattern)):
            found.setdefault(path.name, path)
    return list(found.values())


def golden_file(folder: str, name: str) -> Path:
    """One file of golden numbers."""
    return golden_files(folder, name)[0]


def load(path: Path) -> dict[str, torch.Tensor | np.ndarray]:
    """The arrays of a file, those of numbers as tensors."""
    with np.load(path) as archive:
        return {name: torch.from_numpy(v) if v.dtype.kind in 'fiub' else v for name, v in archive.items()}


def save_weights(state: dict[str, torch.Tensor], path: Path) -> str:
    """Saves a state dict the way a user would."""
    safetensors.torch.save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
    return str(path)


def tiny_clip(patch: int = 16, gelu: bool = False) -> dict:
    """open_clip's config of the model behind golden/clip_hosts."""
    return {
        'embed_dim': 32,
        'quick_gelu': not gelu,
        'vision_cfg': {'image_size': 4 * patch, 'patch_size': patch, 'layers': 4, 'width': 64, 'head_width': 16},
        'text_cfg': {'context_length': 77, 'vocab_size': 49408, 'width': 64, 'heads': 1, 'layers': 2},
    }


def plugin_clip(gelu: bool = False, eps: float = 1e-5) -> dict:
    """open_clip's config of the model behind golden/plugins."""
    vision = {'image_size': 64, 'patch_size': 16, 'layers': 12, 'width': 64, 'head_width': 16}
    return {
        'embed_dim': 32,
        'quick_gelu': not gelu,
        'vision_cfg': {**vision, 'norm_kwargs': {'eps': eps}},
        'text_cfg': tiny_clip()['text_cfg'],
    }


@cache
def text_state() -> dict[str, torch.Tensor]:
    """The text tower of golden/clip_hosts and golden/e2e_voc."""
    state = load(golden_file('clip_hosts', 'weights_text.npz'))
    tokens = torch.zeros(49408, 64)
    for rows in (state, load(golden_file('e2e_voc', 'query_features.npz'))):
        tokens[rows['used_token_ids'].long()] = rows['used_token_rows']
    names = [name for name in state if not name.startswith('used_token')]
    return {**{name: state[name] for name in names}, 'token_embedding.weight': tokens}
