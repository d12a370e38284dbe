"""Regions, and what refined scores mean with and without TPA."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.helpers.zoo import TINY_SAM
from tpa_mmseg.core import (
    ENCODER,
    Adapter,
    ClassProbabilities,
    DecisionRule,
    Evidence,
    FusedScores,
    Fusion,
    Labels,
    Prototypes,
    QueryScores,
    decide,
)
from tpa_mmseg.hosts.trident import refined_scores
from tpa_mmseg.hosts.trident.refined_scores import RefinedScores
from tpa_mmseg.hosts.trident.refinement import Refinement, _at_half_size, _highest
from tpa_mmseg.hosts.trident.regions import find_regions
from tpa_mmseg.sam.decoder import SAMDecoder
from tpa_mmseg.sam.encoder import SAMFeatures
from tpa_mmseg.sam.model import SAMModel

SIZE = (37, 53)
CLASSES = torch.tensor([1, 3])


def coarse_scores(prob_thd: float = 0.4) -> QueryScores:
    """Four classes of six queries, whose probabilities do not sum to one."""
    return QueryScores(2 * torch.randn(6, 5, 7), SIZE, [0, 0, 1, 2, 2, 3], DecisionRule(prob_thd))


def refined_maps() -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of two classes in overlapping masks, and regions that failed in part of them."""
    maps = torch.rand(2, *SIZE) * 0.4
    maps[0, :, 30:] = 0
    maps[1, :15] = 0
    failed = torch.zeros(SIZE, dtype=torch.bool)
    failed[10:30, 10:40] = True
    return maps, failed


def full_map(coarse: QueryScores, maps: torch.Tensor, failed: torch.Tensor) -> torch.Tensor:
    """The whole (C, H, W) refined score map."""
    scores = torch.zeros(4, *SIZE)
    scores[CLASSES] = maps
    return torch.maximum(scores, coarse.probabilities() * coarse.mass * failed)


def adapted(
    scores: RefinedScores, beta: float = 2.5, decision: str = 'host', covered: bool = True
) -> tuple[FusedScores, Labels]:
    """The fused scores, and the labels from one sweep."""
    vectors = torch.nn.functional.normalize(torch.randn(4, 8), dim=1)
    prototypes = Prototypes(vectors * covered, torch.full((4,), covered))
    adapter = Adapter(prototypes, Fusion(alpha=0.5, lambda_=2 * beta, decision=decision))
    evidence = Evidence(scores, {ENCODER: torch.randn(8, 6, 9)})
    return adapter.fuse(evidence), decide(evidence, [adapter])


def test_probabilities_are_the_refined_map_divided_by_its_sum_and_coarse_elsewhere() -> None:
    coarse, (maps, failed) = coarse_scores(), refined_maps()
    scores = RefinedScores(coarse, CLASSES, maps, failed)
    whole = full_map(coarse, maps, failed)
    expected = torch.where(whole.sum(0) > 0, whole / whole.sum(0), coarse.probabilities())
    torch.testing.assert_close(scores.probabilities(), expected, atol=1e-6, rtol=0)
    expected = torch.where(whole.sum(0) > 0, whole.sum(0), coarse.mass)
    torch.testing.assert_close(scores.mass, expected, atol=1e-6, rtol=0)


def test_labels_are_those_of_the_masks_and_the_hosts_own_elsewhere() -> None:
    coarse, (maps, failed) = coarse_scores(), refined_maps()
    scores = RefinedScores(coarse, CLASSES, maps, failed)
    expected = torch.where(maps.sum(0) > 0, CLASSES[maps.argmax(0)], coarse.labels())
    assert torch.equal(scores.labels(), expected)
    # Failed regions and the threshold make the labels differ from the best class: the case is not trivial.
    in_masks = maps.sum(0) > 0
    best = scores.probabilities().argmax(0)
    assert (best != expected)[in_masks].any() and (best != expected)[~in_masks].any()


@pytest.mark.parametrize('decision', ['host', 'argmax'])
@pytest.mark.parametrize('nothing', ['empty bank', 'beta = 0'])
def test_a_lookup_that_adds_nothing_leaves_the_labels_unchanged(nothing: str, decision: str) -> None:
    scores = RefinedScores(coarse_scores(), CLASSES, *refined_maps())
    beta, covered = 0.0 if nothing == 'beta = 0' else 2.5, nothing != 'empty bank'
    with_tpa, (host, (labels,)) = adapted(scores, beta, decision, covered)
    assert torch.equal(with_tpa.labels(), scores.labels())
    assert torch.equal(host, scores.labels()) and torch.equal(labels, scores.labels())


def test_a_lookup_changes_labels_in_masks_only_where_it_changes_the_best_class() -> None:
    coarse, (maps, failed) = coarse_scores(), refined_maps()
    scores = RefinedScores(coarse, CLASSES, maps, failed)
    with_tpa, (host, (labels,)) = adapted(scores)
    before, after = scores.log_band(0, SIZE[0]).argmax(0), with_tpa.log_band(0, SIZE[0]).argmax(0)
    in_masks = maps.sum(0) > 0
    expected = torch.where(before == after, scores.labels(), after)
    assert (before != after)[in_masks].any()
    assert torch.equal(with_tpa.labels()[in_masks], expected[in_masks])
    assert torch.equal(host, scores.labels()) and torch.equal(labels, with_tpa.labels())
    # Elsewhere the threshold applies to the fused scores.
    best = (with_tpa.probabilities() * coarse.mass).amax(0)
    assert torch.equal(with_tpa.labels()[~in_masks], after.masked_fill(best < 0.4, 0)[~in_masks])


def test_plain_argmax_knows_no_labels_of_the_host() -> None:
    with_tpa, _ = adapted(RefinedScores(coarse_scores(), CLASSES, *refined_maps()), decision='argmax')
    assert torch.equal(with_tpa.labels(), with_tpa.log_band(0, SIZE[0]).argmax(0))


def test_pixels_without_a_distribution_keep_a_label() -> None:
    values = torch.rand(4, *SIZE)
    values[:, 3, 4] = 0
    coarse = ClassProbabilities(values, SIZE, DecisionRule(0.2))
    maps, failed = refined_maps()
    maps[:, 3, 4] = 0
    labels = RefinedScores(coarse, CLASSES, maps, failed).labels()
    assert labels[3, 4] == coarse.labels()[3, 4]


def flood(mask: np.ndarray) -> np.ndarray:
    """Numbers the 8-connected regions of a mask by their first pixels, row by row; -1 outside."""
    number = np.full(mask.shape, -1)
    count = 0
    for start in zip(*np.nonzero(mask), strict=True):
        if number[start] >= 0:
            continue
        number[start], stack = count, [start]
        while stack:
            y, x = stack.pop()
            for near in ((y + down, x + right) for down in (-1, 0, 1) for right in (-1, 0, 1)):
                inside = 0 <= near[0] < mask.shape[0] and 0 <= near[1] < mask.shape[1]
                if inside and mask[near] and number[near] < 0:
                    number[near] = count
                    stack.append(near)
        count += 1
    return number


@pytest.mark.parametrize('seed', range(6))
def test_regions_are_connected_and_in_the_order_of_their_first_pixels(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.integers(-1, 3, random.integers(1, 25, 2))
    scores = random.random((3, *labels.shape)).round(1)
    own = np.take_along_axis(scores, labels.clip(0)[None], 0)[0]
    for regions in find_regions(labels, own, minimal_area=1):
        assert np.array_equal(regions.map, flood(labels == regions.label))
        for index, (point, box) in enumerate(zip(regions.points, regions.boxes, strict=True)):
            rows, columns = np.nonzero(regions.map == index)
            assert box.tolist() == [columns.min(), rows.min(), columns.max(), rows.max()]
            first = scores[regions.label][rows, columns].argmax()
            assert point.tolist() == [columns[first], rows[first]]


def test_small_regions_are_left_out() -> None:
    labels, scores = np.array([[0, 0, -1, 1], [0, -1, -1, 1], [-1, 1, -1, -1]]), np.ones((3, 4))
    first, second = find_regions(labels, scores, minimal_area=2)
    assert (first.label, second.label) == (0, 1)
    assert second.map.tolist() == [[-1, -1, -1, 0], [-1, -1, -1, 0], [-1, -1, -1, -1]]
    assert second.boxes.tolist() == [[3, 0, 3, 1]]
    (alone,) = find_regions(labels, scores, minimal_area=3)
    assert alone.label == 0


def test_unsure_pixels_and_classes_are_in_no_region() -> None:
    queries = 2 * torch.randn(4, 5, 7)
    queries[0] = -20  # no pixel is surely of class 0, which unsure ones become
    coarse = ClassProbabilities(queries.softmax(0), SIZE, DecisionRule(0.8))
    half, labels = _at_half_size(coarse, Refinement(coarse_thresh=0.5))
    sure = half.amax(0) >= 0.5
    everything = coarse.labels()[::2, ::2][: len(labels), : labels.shape[1]]
    assert (everything[sure] == 0).any() and (labels[sure] == -1).any()
    assert (labels[~sure] == -1).all() and not (labels == 0).any()


def test_a_gpu_that_is_not_asked_whether_there_are_masks_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    coarse, (maps, failed) = coarse_scores(), refined_maps()
    expected = RefinedScores(coarse, CLASSES, maps, failed)
    monkeypatch.setattr(refined_scores, '_any', lambda flags: True)
    # There a class of which no mask was kept has scores too, all zero.
    more = torch.stack((maps[0], torch.zeros(SIZE), maps[1]))
    found = RefinedScores(coarse, torch.tensor([1, 2, 3]), more, failed)
    assert torch.equal(found.labels(), expected.labels())
    assert torch.equal(found.probabilities(), expected.probabilities()) and torch.equal(found.mass, expected.mass)
    nothing = RefinedScores(coarse, CLASSES, torch.zeros_like(maps), failed)
    assert torch.equal(nothing.labels(), coarse.labels()) and torch.equal(nothing.mass, coarse.mass)


@torch.no_grad()
def test_masks_that_are_not_kept_count_for_nothing() -> None:
    model = SAMModel.of(TINY_SAM)
    decoder, masks = SAMDecoder(model, None), torch.randn(4, 32, 32)
    features = SAMFeatures(None, None, image_size=(48, 64), frame=(96, 128))

    def highest(kept: list[bool]) -> torch.Tensor:
        return _highest(masks, torch.tensor(kept), features, decoder, SIZE)

    some = torch.maximum(highest([True, False, False, False]), highest([False, False, True, False]))
    assert torch.equal(highest([True, False, True, False]), some)
    assert not (highest([False] * 4) > 0).any()
