"""A config with tiny random networks that read any words, and a few painted images."""

from __future__ import annotations

import numpy as np
from mmengine.config import Config

from tests.helpers.zoo import PREPROCESSOR, SLIDE, TINY_CLIP, proxy
from tpa_mmseg.apis import Segmenter


def tiny_config(kind: str = 'SCLIP', **host) -> Config:
    """SCLIP (or another host) with a random CLIP and a random encoder: the labels mean nothing, all else is real."""
    return Config(
        {
            'default_scope': 'mmseg',
            'model': {
                'type': 'TPASegmentor',
                'data_preprocessor': PREPROCESSOR,
                'host': {'type': kind, 'clip': {'model': TINY_CLIP}, 'templates': ['a {}'], **SLIDE, **host},
                'encoder': proxy(8),
            },
            'test_pipeline': [
                {'type': 'LoadImageFromFile'},
                {'type': 'Resize', 'scale': (2048, 48), 'keep_ratio': True},
                {'type': 'LoadAnnotations'},
                {'type': 'PackSegInputs'},
            ],
        }
    )


def tiny_segmenter(classes='cat, dog, tree', **options) -> Segmenter:
    return Segmenter(classes, tiny_config(), progress=False, **options)


def painted(seed: int = 0, size: tuple[int, int] = (40, 56)) -> np.ndarray:
    """(H, W, 3) uint8 RGB: smooth blobs of color."""
    rng = np.random.RandomState(seed)
    coarse = rng.rand(5, 7, 3)
    grown = coarse.repeat(-(-size[0] // 5), 0).repeat(-(-size[1] // 7), 1)[: size[0], : size[1]]
    return (grown * 200 + rng.rand(*size, 3) * 50).astype(np.uint8)
