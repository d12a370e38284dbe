"""The cases of the hosts: an image from pixels to labels, against the same host with everything at full size.

ViT-B/16 with random weights, a 336 x 448 input of a 375 x 500 image, each host with its own defaults.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from tpa_mmseg import catalog
from tpa_mmseg.core import ENCODER, Adapter, Evidence, PrototypeBank, ScoreMap, decide
from tpa_mmseg.hosts import Trident
from tpa_mmseg.hosts.clip_host import CLIPHost

from .measure import Case, Clock
from .plain_host import plain_labels

_CATALOG = catalog.shipped()
CLIP = {**_CATALOG.backbones['vit-b16'].clip, 'pretrained': None}
TINY_CLIP = {
    'model': {
        'embed_dim': 512,
        'vision_cfg': {'image_size': 64, 'layers': 7, 'width': 64, 'head_width': 16, 'patch_size': 16},
        'text_cfg': {'context_length': 77, 'vocab_size': 49408, 'width': 64, 'heads': 1, 'layers': 1},
    },
    'pretrained': None,
}
TINY_SAM = {
    'embed_dim': 16,
    'depth': 2,
    'num_heads': 2,
    'global_attn_indexes': (1,),
    'window_size': 3,
    'image_size': 128,
    'prompt_dim': 16,
}


def random_encoder(name: str) -> dict:
    """An encoder of the catalog with random weights."""
    return {**_CATALOG.encoders[name].encoder, 'pretrained': False}


def tiny_encoder(patch: int) -> dict:
    model = {'img_size': 64, 'patch_size': patch, 'embed_dim': 32, 'depth': 1, 'num_heads': 2}
    return {'type': 'TimmEncoder', 'model': model, 'pretrained': False}


class HostCase(NamedTuple):
    """A row of the table: a host, its options beyond its defaults, and those of a tiny one."""

    type: str
    options: dict
    tiny: dict


_SLIDE = {'slide_crop': 64, 'slide_stride': 32}
HOSTS = {
    'CLIP': HostCase('CLIP', {}, _SLIDE),
    'MaskCLIP': HostCase('MaskCLIP', {}, {}),
    'SCLIP': HostCase('SCLIP', {}, _SLIDE),
    'ClearCLIP': HostCase('ClearCLIP', {}, _SLIDE),
    'NACLIP': HostCase('NACLIP', {}, _SLIDE),
    'NACLIP without PAMR': HostCase('NACLIP', {'pamr_steps': 0}, _SLIDE),
    'GEM': HostCase('GEM', {}, {}),
    'ProxyCLIP': HostCase('ProxyCLIP', {'proxy': random_encoder('dino-b8')}, {**_SLIDE, 'proxy': tiny_encoder(8)}),
    'Trident': HostCase(
        'Trident',
        {'proxy': random_encoder('dino-b16'), 'sam': {'model': 'vit_b', 'checkpoint': False}},
        {**_SLIDE, 'cos_fac': 3.0, 'proxy': tiny_encoder(16), 'sam': {'model': TINY_SAM, 'checkpoint': False}},
    ),
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


def host_config(name: str, vocabulary: Vocabulary, tiny: bool) -> dict:
    """The config of a host with random weights and random text features. Args: name: a key of :data:`HOSTS`."""
    case = HOSTS[name]
    return {
        'type': case.type,
        'clip': TINY_CLIP if tiny else CLIP,
        'text_features': F.normalize(torch.randn(len(vocabulary.query_to_class), 512), dim=1),
        'query_to_class': vocabulary.query_to_class,
        'prob_thd': 0.1 if vocabulary.background_words > 1 else 0.0,
        **case.options,
        **(case.tiny if tiny else {}),
    }


def make_inputs(name: str, vocabulary: Vocabulary, tiny: bool) -> Inputs:
    """Builds a host with random weights, and draws an image for it."""
    torch.manual_seed(0)
    config = host_config(name, vocabulary, tiny)
    bank = PrototypeBank(vocabulary.classes, 768)
    bank.sums, bank.counts = torch.randn(bank.sums.shape, dtype=torch.float64), bank.counts + 10
    image, size = ((3, 64, 96), (70, 105)) if tiny else ((3, 336, 448), (375, 500))
    phi = torch.randn(768, image[1] // 14, image[2] // 14)
    return Inputs(MODELS.build(config), torch.randn(image), size, bank, phi)


@torch.no_grad()
def our_labels(inputs: Inputs) -> Tensor:
    """Labels of the host, our way."""
    (scores,) = inputs.host.score_maps([inputs.image], [SegDataSample(metainfo={'ori_shape': inputs.size})])
    return scores.labels()


@torch.no_grad()
def other_labels(inputs: Inputs) -> Tensor:
    """Labels of the host with everything at full size."""
    return plain_labels(inputs.host, inputs.image, inputs.size)


def _network(inputs: Inputs) -> tuple:
    """All networks on an image. Returns what :func:`_stitch` takes."""
    host, image = inputs.host, inputs.image
    (cut,) = host.cut([image])
    (maps,) = host.score_windows([cut.windows])
    if not isinstance(host, Trident):
        return (maps,)
    return maps, host.sam(host.sam_image(image, None, inputs.size), embed=False)


def _stitch(inputs: Inputs, maps: list[Tensor], *sam) -> ScoreMap:
    """From what windows give to the scores of the image; Trident's mixing by SAM is part of it."""
    host, image = inputs.host, inputs.image
    if sam:
        canvas = host.splice(maps, host.fitted_size(tuple(image.shape[-2:])))
        maps = list(host.cosines(host.features_of(canvas, sam)))
    scores = host.decode(maps, image, inputs.size)
    scores.log_band(0, 1)  # mask refinement is done when rows are first read
    return scores


@torch.no_grad()
def stages(inputs: Inputs, repeats: int, clock: Clock) -> dict[str, float]:
    """Median seconds of each stage of an image: network, stitching, decoding, and what TPA adds to decoding."""
    timed = partial(_timed, repeats=repeats, clock=clock)
    network, found = timed(partial(_network, inputs))
    stitching, scores = timed(partial(_stitch, inputs, *found))
    decoding, _ = timed(scores.labels)
    adapter = Adapter(inputs.bank.prototypes())
    both, _ = timed(lambda: decide(Evidence(scores, {ENCODER: inputs.phi}), [adapter]))
    return {'network': network, 'stitching': stitching, 'decoding': decoding, 'TPA': max(0.0, both - decoding)}


def _timed(run: Callable, repeats: int, clock: Clock) -> tuple[float, object]:
    """Median seconds after a warm-up, and what came out."""
    out, times = run(), []
    for _ in range(repeats):
        start = clock()
        out = run()
        times.append(clock() - start)
    return statistics.median(times), out


def host_cases(quick: bool = False) -> list[Case]:
    """The cases with their targets. Args: quick: tiny models, only to see that everything runs."""
    return [_case(name, vocabulary, quick) for name in HOSTS for vocabulary in VOCABULARIES]


def _case(name: str, vocabulary: Vocabulary, tiny: bool) -> Case:
    demanding = vocabulary.classes > 100 or vocabulary.background_words > 1
    return Case(
        f'{name}, {vocabulary}',
        name,
        'window by window, full tensors',
        str(vocabulary),
        partial(make_inputs, name, vocabulary, tiny),
        partial(make_inputs, name, vocabulary, True),
        our_labels,
        other_labels,
        times_faster=1.3 if demanding else 1.0,
        memory_ratio=1 / 3,
        stages=stages,
    )
