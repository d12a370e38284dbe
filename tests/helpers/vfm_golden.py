"""Reference numbers of ProxyCLIP and Trident, and the tiny models they were made with.

The committed selection holds some of the cases, and every fourth row and column of large maps.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from mmseg.structures import SegDataSample

from .golden import golden_file, load, save_weights

FOLDER = 'vfm_hosts'
# The images of these files are RGB already.
PREPROCESSOR = {
    'type': 'SegDataPreProcessor',
    'mean': [122.771, 116.746, 104.094],
    'std': [68.501, 66.632, 70.323],
}

Case = dict[str, torch.Tensor]


@cache
def cases(file: str) -> dict[str, Case]:
    """The cases of a file: name -> arrays."""
    found: dict[str, Case] = {}
    for key, array in load(golden_file(FOLDER, file)).items():
        case, _, name = key.partition('/')
        if name:
            found.setdefault(case, {})[name] = array
    return found


def shared(file: str, name: str) -> torch.Tensor:
    """An array that all cases of a file share."""
    return load(golden_file(FOLDER, file))[name]


def available(file: str, clip_of: dict[str, str]) -> list[str]:
    """The cases of a file whose CLIP model is there. Args: clip_of: CLIP of the cases that do not use B/16."""
    models = {path.stem for path in golden_file(FOLDER, file).parent.glob('clip_*.npz')}
    return [case for case in cases(file) if f'clip_{clip_of.get(case, "b16")}' in models]


def clip(name: str, folder: Path) -> dict:
    """The tiny CLIP ``'b16'`` or ``'h14'`` as the entry of a config. Args: folder: where to put its weights."""
    path = folder / f'clip_{name}.safetensors'
    if not path.exists():
        state = load(golden_file(FOLDER, f'clip_{name}.npz'))
        save_weights({f'visual.{key}': tensor for key, tensor in state.items()}, path)
    patch, native = {'b16': (16, 64), 'h14': (14, 70)}[name]
    vision = {'image_size': native, 'patch_size': patch, 'layers': 4, 'width': 64, 'head_width': 16}
    text = {'context_length': 77, 'vocab_size': 49408, 'width': 64, 'heads': 1, 'layers': 2}
    model = {'embed_dim': 32, 'quick_gelu': name == 'b16', 'vision_cfg': vision, 'text_cfg': text}
    return {'model': model, 'pretrained': str(path)}


def vit(patch: int, pretrained: str | bool, position: str = 'dino') -> dict:
    """A tiny vision transformer as the entry of a config."""
    model = {'img_size': 7 * patch, 'patch_size': patch, 'embed_dim': 32, 'depth': 2, 'num_heads': 2}
    return {'type': 'TimmEncoder', 'model': model, 'pretrained': pretrained, 'position': position}


def as_data(rgb: torch.Tensor, ori_shape: torch.Tensor, **meta) -> dict:
    """A batch of one (H, W, 3) image, as a data loader gives it."""
    sample = SegDataSample(metainfo={'ori_shape': tuple(map(int, ori_shape)), **meta})
    return {'inputs': [rgb.permute(2, 0, 1)], 'data_samples': [sample]}


def assert_like(found: torch.Tensor, stored: torch.Tensor, atol: float) -> None:
    """Compares a map with the rows and columns of it that are stored."""
    step = -(-found.shape[-1] // stored.shape[-1])
    found = found[..., ::step, ::step]
    torch.testing.assert_close(found, stored.reshape(found.shape), atol=atol, rtol=0)
