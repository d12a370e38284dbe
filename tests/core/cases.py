"""Random inputs of every shape that the core has to cope with."""

from __future__ import annotations

from typing import NamedTuple

import torch
from hypothesis import settings
from torch import Tensor

from tpa_mmseg.core import ENCODER, Adapter, AnchorRule, DecisionRule, Evidence, Fusion, PrototypeBank, ScoreMap, decide

#: Few and small examples: properties are checked on shapes, not on luck.
few = settings(max_examples=25, deadline=None, derandomize=True)

#: Every rule by which a host may decide.
RULES = {
    'argmax': DecisionRule(),
    'prob_thd': DecisionRule(prob_thd=0.45),
    'area_thd': DecisionRule(area_thd=0.12),
    'area and prob': DecisionRule(prob_thd=0.4, area_thd=0.12),
}


class Shape(NamedTuple):
    """Sizes of an image, of its host's scores and of its encoder's patch grid."""

    image: tuple[int, int]
    scores: tuple[int, int]
    grid: tuple[int, int]


SHAPES = {
    'square': Shape((32, 32), (8, 8), (4, 4)),
    'not square': Shape((37, 53), (5, 9), (6, 4)),
    'downsampled': Shape((9, 7), (20, 31), (14, 15)),
    'down in one axis only': Shape((40, 6), (10, 24), (3, 17)),
    'same size': Shape((12, 10), (12, 10), (12, 10)),
    'one patch': Shape((11, 13), (1, 1), (1, 1)),
    'one pixel': Shape((1, 1), (3, 4), (2, 3)),
    'one pixel, one patch': Shape((1, 1), (1, 1), (1, 1)),
    'very wide': Shape((2, 900), (3, 40), (1, 65)),
    'very tall': Shape((900, 2), (40, 3), (65, 1)),
}


def random_scores(channels: int, size: tuple[int, int], spread: float = 2.0) -> Tensor:
    """(channels, h, w) scores, as confident as ``spread`` says."""
    return spread * torch.randn(channels, *size)


def random_bank(num_classes: int, dim: int, uncovered: tuple[int, ...] = (), rule: AnchorRule | None = None):
    """A bank with a random prototype for every class but the uncovered ones."""
    bank = PrototypeBank(num_classes, dim, rule)
    bank.sums = torch.randn(num_classes, dim, dtype=torch.float64)
    bank.counts = torch.full((num_classes,), 10)
    for label in uncovered:
        bank.sums[label] = 0
        bank.counts[label] = 0
    return bank


def both_labels(host: ScoreMap, bank: PrototypeBank, phi: Tensor, **fusion) -> tuple[Tensor, Tensor]:
    """(H, W) labels of the host alone and with TPA, from one sweep."""
    adapter = Adapter(bank.prototypes(), Fusion(**fusion))
    alone, (adapted,) = decide(Evidence(host, {ENCODER: phi}), [adapter])
    return alone, adapted
