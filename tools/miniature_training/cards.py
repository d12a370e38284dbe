"""Weights in the repository, each with a card that says where they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

import tpa_mmseg.miniature
from tpa_mmseg.io import atomic_write, write_json

#: The committed weights and their cards.
WEIGHTS = Path(tpa_mmseg.miniature.__file__).with_name('weights')


def write_weights(
    path: Path, state: Mapping[str, Tensor], card: Mapping, metadata: dict[str, str] | None = None
) -> None:
    """Writes weights in half precision, and their card, a JSON file, beside them.

    Args:
        path: The safetensors file.
        state: A state dict; what is not a number of a network (such as indices) keeps its type.
        card: What it was trained on and how, with the numbers it reached.
        metadata: Entries for the header of the safetensors file.
    """
    path = Path(path)
    half = {name: _half(tensor).contiguous() for name, tensor in state.items()}
    with atomic_write(path) as file:
        file.write(safetensors.torch.save(half, metadata))
    size = {'parameters': sum(tensor.numel() for tensor in half.values()), 'bytes': path.stat().st_size}
    write_json(path.with_suffix('.json'), {**card, **size})


def read_card(path: Path) -> dict:
    """The card of a weights file."""
    return json.loads(Path(path).with_suffix('.json').read_text('utf-8'))


def _half(tensor: Tensor) -> Tensor:
    return tensor.detach().to(torch.float16) if tensor.is_floating_point() else tensor
