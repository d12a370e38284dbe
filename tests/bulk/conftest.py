"""Shared by the tests of bulk work: images, and the bank and the labels of one process that goes through them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.bulk.world import MODEL, paint
from tpa_mmseg.apis import ImageSource, Segmenter


@pytest.fixture(scope='session')
def images() -> dict[str, bytes]:
    return paint(24)


@pytest.fixture(scope='session')
def few(images: dict[str, bytes]) -> dict[str, bytes]:
    return dict(list(images.items())[:30])


@pytest.fixture(scope='session')
def plain(images: dict[str, bytes]) -> Segmenter:
    """A segmenter whose bank has some of the images."""
    segmenter = Segmenter(**MODEL, cache_bytes=0, progress=False)
    segmenter.adapt([ImageSource(name, content) for name, content in list(images.items())[::6]])
    return segmenter


@pytest.fixture(scope='session')
def bank(plain: Segmenter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp('bank') / 'bank.safetensors'
    plain.save_bank(path)
    return path


@pytest.fixture(scope='session')
def labels(plain: Segmenter, images: dict[str, bytes]) -> dict[str, np.ndarray]:
    """The labels of all images, by the plain loop."""
    return {
        result.name: result.labels for result in plain.stream(ImageSource(name, data) for name, data in images.items())
    }
