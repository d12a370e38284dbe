"""Nothing of size C x H x W or D x H x W exists while an image is decoded or folded into a bank."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from tests.core.cases import RULES, both_labels, random_bank, random_scores
from tpa_mmseg.core import AnchorRule, PrototypeBank, QueryScores, find_anchors

CLASSES, DIM, SIZE, GRID = 40, 48, (320, 256), (20, 16)
PIXELS = SIZE[0] * SIZE[1]


class LargestTensor(TorchDispatchMode):
    """Notes the elements of the largest tensor that any operation makes. A slice is a view and costs nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function is not torch.ops.aten.slice.Tensor:
            sizes = [leaf.numel() for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor)]
            self.elements = max([self.elements, *sizes])
        return result


@pytest.fixture(autouse=True)
def _small_bands(monkeypatch):
    """A band budget that is small against the image: the image need not be large then."""
    monkeypatch.setattr('tpa_mmseg.core.bilinear._BAND_ELEMENTS', {'cpu': 1 << 18})


def largest(work) -> int:
    with LargestTensor() as mode:
        work()
    return mode.elements


def bank_and_features() -> tuple[PrototypeBank, torch.Tensor]:
    return random_bank(CLASSES, DIM), torch.randn(DIM, *GRID)


def test_the_measurement_sees_a_full_size_tensor():
    host = QueryScores(random_scores(CLASSES, GRID), SIZE)
    assert largest(host.probabilities) >= CLASSES * PIXELS


@pytest.mark.parametrize('rule', RULES.values(), ids=RULES)
def test_decoding_with_tpa_makes_nothing_of_full_size(rule):
    scores = random_scores(CLASSES + 1, GRID)
    host = QueryScores(scores, SIZE, [*range(CLASSES), CLASSES - 1], rule)
    peak = largest(lambda: both_labels(host, *bank_and_features()))
    # The labels themselves, and a band.
    assert peak <= max(PIXELS, 1 << 18)
    assert peak < CLASSES * PIXELS / 10


@pytest.mark.parametrize('rule', [AnchorRule(), AnchorRule(per='patch'), AnchorRule(random=True)])
def test_anchors_and_bank_make_nothing_of_full_size(rule):
    host = QueryScores(random_scores(CLASSES, GRID), SIZE)
    budget = max(PIXELS, 1 << 18)
    assert largest(lambda: find_anchors(host, GRID, rule)) <= budget
    assert largest(lambda: PrototypeBank(CLASSES, DIM, rule).update(host, torch.randn(DIM, *GRID))) <= budget


def test_full_size_scores_are_decoded_without_a_copy_of_them():
    full = random_scores(CLASSES, SIZE)
    host = QueryScores(full, SIZE)
    assert largest(lambda: both_labels(host, *bank_and_features())) < full.numel() / 4
