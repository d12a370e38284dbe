"""The reference features of the original implementations, with the weights and images they were made from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

GOLDEN = Path(__file__).parents[1] / 'golden' / 'vfm_hosts' / 'vfm.npz'


@pytest.fixture(scope='session')
def golden() -> dict[str, torch.Tensor]:
    with np.load(GOLDEN) as arrays:
        return {name: torch.from_numpy(arrays[name]) for name in arrays}


@pytest.fixture
def golden_weights(golden, tmp_path):
    """Writes the weights of a family to a file and returns its path."""

    def write(family: str) -> Path:
        prefixes = (f'{family}/w/', f'{family}/w_timm/')
        state = {name.removeprefix(p): v for name, v in golden.items() for p in prefixes if name.startswith(p)}
        path = tmp_path / f'{family}.safetensors'
        safetensors.torch.save_file(state, path)
        return path

    return write
