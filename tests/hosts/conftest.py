"""Weights files of the tiny golden models, written once per session."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .golden import golden_file, load, save_weights, text_state


@pytest.fixture(scope='session')
def clip_weights(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], str]:
    """File with both towers of golden/clip_hosts, by patch size."""
    folder, files = tmp_path_factory.mktemp('clip_weights'), {}

    def weights(patch: int) -> str:
        if patch not in files:
            visual = load(golden_file('clip_hosts', f'weights_p{patch}.npz'))
            files[patch] = save_weights({**visual, **text_state()}, folder / f'p{patch}.safetensors')
        return files[patch]

    return weights


@pytest.fixture(scope='session')
def plugin_weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    """File with the visual tower of golden/plugins."""
    state = load(golden_file('plugins', 'weights.npz'))
    path = tmp_path_factory.mktemp('plugin_weights') / 'visual.safetensors'
    return save_weights({f'visual.{name}': tensor for name, tensor in state.items()}, path)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text features that a test makes stay with the test."""
    monkeypatch.setenv('TPA_CACHE', str(tmp_path_factory.mktemp('cache')))
