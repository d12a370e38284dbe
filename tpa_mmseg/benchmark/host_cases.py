"""The cases of the hosts: an image from pixels to labels, against the same host with everything at full size.

ViT-B/16 with random weights, a 336 x 448 input of a 375 x 500 image. Mask refinement (PAMR), which is the same with and
without bands, is left out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from torch import Tensor

from ..core import FusedScores, Fusion, Lookup, PrototypeBank
from ..hosts.clip_host import CLIPHost
from ..hosts.windows import run_batched
from .measure import Case
from .plain_host import plain_labels

CLIP = {'model': 'ViT-B-16-quickgelu', 'pretrained': None}
TINY_CLIP = {
    'model': {
        'embed_dim': 512,
        'vision_cfg': {'image_size': 64, 'layers': 7, 'width': 64, 'head_width': 16, 'patch_size': 16},
        'text_cfg': {'context_length': 77, 'vocab_size': 49408, 'width': 64, 'heads': 1, 'layers': 1},
    },
    'pretrained': None,
}
PROXY = {'type': 'TimmEncoder', 'model': 'vit_base_patch8_224.dino', 'pretrained': False}
TINY_PROXY = {
    'type': 'TimmEncoder',
    'model': {
        'type': 'VisionTransformer',
        'img_size': 64,
        'patch_size': 8,
        'embed_dim': 32,
        'depth': 1,
        'num_heads': 2,
    },
    'pretrained': False,
}
HOSTS = {
    'CLIP': {},
    'MaskCLIP': {},
    'SCLIP': {},
    'ClearCLIP': {},
    'NACLIP': {'pamr_steps': 0},
    'GEM': {},
    'ProxyCLIP': {},
}


@dataclass(frozen=True)
class Vocabulary:
    """How many classes there are, and how many text queries the first of them shares among itself."""

    classes: int
    background_words: int = 1

    @property
    def query_to_class(self) -> list[int]:
        return [0] * self.background_words + list(range(1, self.classes))

    def __str__(self) -> str:
        synonyms = f', {len(self.query_to_class)} queries' if self.background_words > 1 else ''
        return f'C = {self.classes}{synonyms}'


# The lists of VOC21 with its synonyms (56 queries), of VOC21 with one name per class, and of COCO-Stuff.
VOCABULARIES = (Vocabulary(21, 36), Vocabulary(21), Vocabulary(171))


class Inputs(NamedTuple):
    """A host and an image; what TPA adds to it."""

    host: CLIPHost
    image: Tensor
    size: tuple[int, int]
    bank: PrototypeBank
    phi: Tensor


def make_inputs(name: str, vocabulary: Vocabulary, tiny: bool) -> Inputs:
    """Builds a host with random weights, and draws an image for it."""
    torch.manual_seed(0)
    queries = F.normalize(torch.randn(len(vocabulary.query_to_class), 512), dim=1)
    options = {'prob_thd': 0.1 if vocabulary.background_words > 1 else 0.0, **HOSTS[name]}
    if name == 'ProxyCLIP':
        options['proxy'] = TINY_PROXY if tiny else PROXY
    if tiny:
        options |= {'slide_crop': 64, 'slide_stride': 32}
    host = MODELS.build(
        {
            'type': name,
            'clip': TINY_CLIP if tiny else CLIP,
            'text_features': queries,
            'query_to_class': vocabulary.query_to_class,
            **options,
        }
    )
    bank = PrototypeBank(vocabulary.classes, 768)
    bank.sums, bank.counts = torch.randn(bank.sums.shape, dtype=torch.float64), bank.counts + 10
    image, size = ((3, 64, 96), (70, 105)) if tiny else ((3, 336, 448), (375, 500))
    return Inputs(host, torch.randn(image), size, bank, torch.randn(768, image[1] // 14, image[2] // 14))


@torch.no_grad()
def our_labels(inputs: Inputs) -> Tensor:
    """Labels of the host, our way."""
    return _scores(inputs, _windows(inputs)).labels()


@torch.no_grad()
def other_labels(inputs: Inputs) -> Tensor:
    """Labels of the host with everything at full size."""
    return plain_labels(inputs.host, inputs.image, inputs.size)


def _windows(inputs: Inputs) -> list[Tensor]:
    windows = inputs.host.sliding.cut(inputs.image)
    return run_batched(inputs.host.patch_scores, windows, inputs.host.windows_per_call)


def _scores(inputs: Inputs, maps: list[Tensor]):
    return inputs.host.decode(maps, inputs.image, inputs.size)


@torch.no_grad()
def stages(inputs: Inputs, repeats: int) -> dict[str, float]:
    """Median seconds of each stage of an image: network, stitching, decoding, and what TPA adds to decoding."""
    network, maps = _timed(partial(_windows, inputs), repeats)
    stitching, scores = _timed(partial(_scores, inputs, maps), repeats)
    decoding, _ = _timed(scores.labels, repeats)
    prototypes = inputs.bank.prototypes()

    def with_tpa() -> Tensor:
        return FusedScores(scores, Lookup(prototypes, inputs.phi, inputs.size), Fusion()).both_labels()

    both, _ = _timed(with_tpa, repeats)
    return {'network': network, 'stitching': stitching, 'decoding': decoding, 'TPA': max(0.0, both - decoding)}


def _timed(run: Callable, repeats: int) -> tuple[float, object]:
    """Median seconds after a warm-up, and what came out."""
    out, times = run(), []
    for _ in range(repeats):
        start = time.perf_counter()
        out = run()
        times.append(time.perf_counter() - start)
    return statistics.median(times), out


def host_cases(quick: bool = False) -> list[Case]:
    """The cases with their targets. Args: quick: tiny models, only to see that everything runs."""
    cases = []
    for name in HOSTS:
        for vocabulary in VOCABULARIES:
            demanding = vocabulary.classes > 100 or vocabulary.background_words > 1
            cases.append(
                Case(
                    f'{name}, {vocabulary}',
                    name,
                    'window by window, full tensors',
                    str(vocabulary),
                    _cached(name, vocabulary, quick),
                    partial(make_inputs, name, vocabulary, True),
                    our_labels,
                    other_labels,
                    times_faster=1.3 if demanding else 1.0,
                    memory_ratio=1 / 3,
                    stages=stages,
                )
            )
    return cases


def _cached(name: str, vocabulary: Vocabulary, tiny: bool) -> Callable[[], Inputs]:
    return partial(_last_inputs, name, vocabulary, tiny)


@lru_cache(maxsize=1)
def _last_inputs(name: str, vocabulary: Vocabulary, tiny: bool) -> Inputs:
    """The same inputs again without building the networks again."""
    return make_inputs(name, vocabulary, tiny)
