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


@pytest.fixture(autouse=True)
def weights_folder(tmp_path, monkeypatch) -> Path:
    """An empty weights folder of the test's own."""
    folder = tmp_path / 'weights'
    folder.mkdir()
    monkeypatch.setenv('TPA_WEIGHTS', str(folder))
    return folder


@pytest.fixture
def no_hub(tmp_path, monkeypatch) -> Path:
    """No connection to the hub and nothing in its cache, whose folder is returned."""
    import huggingface_hub.constants

    cache = tmp_path / 'hub'
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_CACHE', str(cache))
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_OFFLINE', True)
    return cache
