"""The cases of the core: lookup and fusion, the bank, and decoding from low-resolution scores to labels.

All of them start from what a network leaves: class scores (C, h, w) at low resolution and patch features (D, h', w').
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from tpa_mmseg.core import (
    ENCODER,
    Adapter,
    AnchorRule,
    Evidence,
    Fusion,
    PrototypeBank,
    Prototypes,
    QueryScores,
    decide,
)
from tpa_mmseg.core.centered import SecondTerm

from . import direct
from .measure import Case


@dataclass(frozen=True)
class Problem:
    """Sizes: of the image, of its host's scores, of its encoder's patch grid; number of classes and of features."""

    image: tuple[int, int]
    scores: tuple[int, int]
    grid: tuple[int, int]
    classes: int
    dim: int = 768

    def __str__(self) -> str:
        return f'{self.image[0]} x {self.image[1]}, C = {self.classes}'


class Inputs(NamedTuple):
    """Features and scores of a test image, and the bank."""

    size: tuple[int, int]
    scores: Tensor
    phi: Tensor
    prototypes: Prototypes
    second: SecondTerm


def make_inputs(problem: Problem) -> Inputs:
    """Random inputs; the scores are confident enough that nearly every pixel is an anchor."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    scores, phi = 3 * draw(problem.classes, *problem.scores), draw(problem.dim, *problem.grid)
    bank = PrototypeBank(problem.classes, problem.dim)
    bank.sums, bank.counts = draw(problem.classes, problem.dim).double(), bank.counts + 10
    # Random scores give each class about as many pixels, give or take the spread; in a photograph few classes are open.
    spread = (problem.classes / math.prod(problem.scores)) ** 0.5
    second = SecondTerm(bank.centered_prototypes(), 3.0, (1 + _OPEN_FROM * spread) / problem.classes)
    return Inputs(problem.image, scores, phi, bank.prototypes(), second)


def tpa_labels(inputs: Inputs) -> Tensor:
    """Labels with TPA, our way."""
    size, scores, phi, prototypes, _ = inputs
    return Adapter(prototypes).fuse(Evidence(QueryScores(scores, size), {ENCODER: phi})).labels()


def both_labels(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """The host's labels and TPA's in one sweep: what a test runs."""
    size, scores, phi, prototypes, _ = inputs
    alone, (adapted,) = decide(Evidence(QueryScores(scores, size), {ENCODER: phi}), [Adapter(prototypes)])
    return alone, adapted


def consistent_labels(inputs: Inputs) -> tuple[Tensor, Tensor]:
    """The host's labels and those of consistent TPA."""
    size, scores, phi, prototypes, second = inputs
    evidence = Evidence(QueryScores(scores, size), {ENCODER: phi})
    alone, (adapted,) = decide(evidence, [Adapter(prototypes, second=second)])
    return alone, adapted


def direct_tpa_labels(inputs: Inputs) -> Tensor:
    """Labels with TPA as the equations read."""
    size, scores, phi, prototypes, _ = inputs
    p = direct.upsample(scores, size).softmax(0)
    cosines = direct.lookup(prototypes.vectors, prototypes.covered, phi, size)
    return direct.fuse(p, cosines, Fusion().beta).argmax(0)


def bank_update(inputs: Inputs) -> Tensor:
    """Folds an image into a bank, our way."""
    bank = PrototypeBank(len(inputs.scores), len(inputs.phi))
    bank.update(QueryScores(inputs.scores, inputs.size), inputs.phi)
    return bank.sums


def direct_bank_update(inputs: Inputs) -> Tensor:
    """Folds an image into a bank as the equations read."""
    p = direct.upsample(inputs.scores, inputs.size).softmax(0)
    return direct.bank_update(direct.anchor_labels(p, AnchorRule()), inputs.phi, len(p))[0]


def plain_labels(inputs: Inputs) -> Tensor:
    """What a host does without TPA: upsampling, softmax and argmax at full size."""
    return direct.upsample(inputs.scores, inputs.size).softmax(0).argmax(0)


COCO_STUFF = Problem((480, 640), (30, 40), (24, 32), 171)
ADE20K = Problem((1200, 1800), (75, 112), (32, 48), 150)
VOC = Problem((480, 640), (30, 40), (24, 32), 21)
LARGE = Problem((512, 683), (32, 43), (24, 32), 1000)
# A smaller image: the reference holds two maps of C x H x W floats.
LARGER = Problem((256, 342), (16, 22), (12, 16), 3000)
# Beyond how many spreads of its share a class is open: about a fifth of the classes.
_OPEN_FROM = 0.8
TINY = Problem((48, 64), (3, 4), (4, 5), 7, 16)


def core_cases(quick: bool = False) -> list[Case]:
    """The cases with their targets. Args: quick: tiny problems, only to see that everything runs."""

    def case(name: str, title: str, against: str, problem: Problem, ours, other, **targets: float) -> Case:
        problem = TINY if quick else problem
        inputs, warm_inputs = partial(make_inputs, problem), partial(make_inputs, TINY)
        return Case(name, title, against, str(problem), inputs, warm_inputs, ours, other, **targets)

    written_out, plain = 'equations at full size', 'softmax + argmax at full size, no TPA'
    decoding = 'decoding with TPA, host and TPA labels'
    targets = {'times_faster': 2, 'memory_mb': 64}
    consistent, without, at_most = 'decoding with consistent TPA', 'TPA without it', {'times_faster': 1 / 1.6}
    return [
        case(
            'lookup_fusion',
            'lookup + fusion, TPA labels',
            written_out,
            COCO_STUFF,
            tpa_labels,
            direct_tpa_labels,
            times_faster=10,
            memory_ratio=1 / 5,
        ),
        case('bank_update', 'bank update', written_out, COCO_STUFF, bank_update, direct_bank_update, times_faster=10),
        case('decode_coco_stuff', decoding, plain, COCO_STUFF, both_labels, plain_labels, **targets),
        case('decode_ade20k', decoding, plain, ADE20K, both_labels, plain_labels, **targets),
        case('decode_voc', decoding, plain, VOC, both_labels, plain_labels, **targets),
        case('decode_1000', decoding, plain, LARGE, both_labels, plain_labels, **targets),
        case('decode_3000', decoding, plain, LARGER, both_labels, plain_labels, **targets),
        case('consistent_coco_stuff', consistent, without, COCO_STUFF, consistent_labels, both_labels, **at_most),
        case('consistent_voc', consistent, without, VOC, consistent_labels, both_labels, **at_most),
    ]
