"""Which pixels are anchors, and their weight on the patch grid."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close
from tpa_tools.benchmarking import direct

from tests.core.cases import SHAPES, random_scores
from tpa_mmseg.core import AnchorRule, ClassProbabilities, QueryScores, anchor_map, find_anchors

ALL = AnchorRule(k_min=0)


def full_probabilities(scores, size, query_to_class=None):
    return direct.probabilities(direct.class_scores(direct.upsample(scores, size), query_to_class))[0]


def painted(labels: list[int], num_classes: int, certain: float = 20.0) -> QueryScores:
    """A row of pixels, each certain of its class."""
    scores = torch.zeros(num_classes, 1, len(labels))
    scores[torch.tensor(labels), 0, torch.arange(len(labels))] = certain
    return QueryScores(scores, (1, len(labels)))


@pytest.mark.parametrize('query_to_class', [None, [2, 0, 1, 0, 3]])
@pytest.mark.parametrize('k', [1, 2, 3.5])
@pytest.mark.parametrize('shape', SHAPES.values(), ids=SHAPES)
def test_anchors_are_the_pixels_whose_best_probability_exceeds_k_over_c(shape, k, query_to_class):
    scores, rule = random_scores(5, shape.scores), AnchorRule(k=k)
    expected = direct.anchor_labels(full_probabilities(scores, shape.image, query_to_class), rule)
    assert torch.equal(anchor_map(QueryScores(scores, shape.image, query_to_class), rule), expected)


def test_an_anchor_must_exceed_tau_and_not_only_reach_it():
    # Two of four classes share everything: p is exactly 1/2, which is tau for k = 2.
    scores = torch.tensor([0.0, 0.0, -torch.inf, -torch.inf])[:, None, None]
    assert find_anchors(QueryScores(scores, (1, 1)), (1, 1), ALL).counts.sum() == 0
    slightly_less = AnchorRule(k=1.999, k_min=0)
    assert find_anchors(QueryScores(scores, (1, 1)), (1, 1), slightly_less).counts.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(('classes', 'tau'), [(1, 0.9), (2, 0.9), (3, 2 / 3), (171, 2 / 171)])
def test_tau_is_k_over_c_but_never_out_of_reach(classes, tau):
    assert AnchorRule().tau(classes) == pytest.approx(tau)


def test_two_classes_have_anchors_where_the_host_is_nearly_sure():
    p = torch.tensor([[0.91, 0.89, 0.05], [0.09, 0.11, 0.95]])[:, None]
    assert anchor_map(ClassProbabilities(p, (1, 3)), AnchorRule()).tolist() == [[0, -1, 1]]


def test_with_one_class_every_pixel_is_an_anchor():
    assert find_anchors(QueryScores(torch.randn(1, 2, 3), (4, 6)), (2, 2), AnchorRule()).counts.tolist() == [24]


def test_fewer_than_k_min_anchors_contribute_nothing_and_exactly_k_min_stay():
    anchors = find_anchors(painted([0] * 4 + [1] * 5 + [2] * 6, 3), (1, 3), AnchorRule(k_min=5))
    assert anchors.counts.tolist() == [0, 5, 6]
    assert_close(anchors.weights.sum((1, 2)), torch.tensor([0.0, 5.0, 6.0], dtype=torch.float64))


def test_k_min_over_the_pool_keeps_the_few_anchors_of_an_image():
    rule = AnchorRule(k_min=5, k_min_scope='pool')
    assert find_anchors(painted([0] * 4 + [1] * 5, 2), (1, 3), rule).counts.tolist() == [4, 5]


@pytest.mark.parametrize('shape', SHAPES.values(), ids=SHAPES)
def test_anchors_per_patch_read_probabilities_resized_to_the_patch_grid(shape):
    scores, rule = random_scores(4, shape.scores), AnchorRule(per='patch', k_min=0)
    p = direct.upsample(full_probabilities(scores, shape.image), shape.grid)
    labels = direct.anchor_labels(p, rule)
    anchors = find_anchors(QueryScores(scores, shape.image), shape.grid, rule)
    expected = torch.stack([labels == label for label in range(4)]).double()
    assert torch.equal(anchors.weights, expected)
    assert torch.equal(anchors.counts, expected.sum((1, 2)).long())


@pytest.mark.parametrize('per', ['pixel', 'patch'])
@pytest.mark.parametrize('k_min', [0, 12])
def test_random_anchors_keep_the_counts_of_every_class_and_take_other_places(per, k_min):
    scores = QueryScores(random_scores(4, (6, 5)), (30, 27))
    true = find_anchors(scores, (9, 8), AnchorRule(per=per, k_min=k_min))
    random = find_anchors(scores, (9, 8), AnchorRule(per=per, k_min=k_min, random=True), seed=7)
    assert torch.equal(true.counts, random.counts)
    assert true.counts.sum() > 0
    assert_close(random.weights.sum((1, 2)), true.counts.double())
    assert not torch.allclose(random.weights, true.weights)


def test_random_anchors_are_decided_by_their_seed():
    scores, rule = QueryScores(random_scores(3, (6, 5)), (30, 27)), AnchorRule(random=True)
    first, again, other = (find_anchors(scores, (4, 4), rule, seed).weights for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize('undefined', [float('nan'), float('inf')])
@pytest.mark.parametrize('per', ['pixel', 'patch'])
def test_a_pixel_with_a_non_finite_score_is_never_an_anchor(per, undefined):
    scores = torch.zeros(3, 4, 4)
    scores[1] = 20
    scores[1, 2, 3] = undefined
    anchors = find_anchors(QueryScores(scores, (4, 4)), (4, 4), AnchorRule(per=per))
    assert anchors.counts.tolist() == [0, 15, 0]
    assert anchors.weights[1, 2, 3] == 0


def test_a_pixel_where_every_class_is_impossible_is_never_an_anchor():
    scores = torch.zeros(3, 1, 2)
    scores[1] = 20
    scores[:, 0, 1] = -torch.inf
    assert anchor_map(QueryScores(scores, (1, 2)), AnchorRule()).tolist() == [[1, -1]]


def test_a_pixel_where_the_host_scores_nothing_is_never_an_anchor():
    values = torch.zeros(3, 1, 2)
    values[1, 0, 0] = 0.2
    assert anchor_map(ClassProbabilities(values, (1, 2)), AnchorRule()).tolist() == [[1, -1]]


def test_anchors_do_not_depend_on_the_band_size(monkeypatch):
    scores = random_scores(5, (6, 7))
    found = []
    for elements in (1, 5 * 31 * 4, 1 << 20):
        monkeypatch.setattr('tpa_mmseg.core.bilinear._BAND_ELEMENTS', {'cpu': elements})
        found.append(find_anchors(QueryScores(scores, (25, 31)), (4, 5), AnchorRule()))
    for other in found[1:]:
        assert torch.equal(other.counts, found[0].counts)
        assert_close(other.weights, found[0].weights, atol=1e-12, rtol=0)


@pytest.mark.parametrize('wrong', [{'per': 'image'}, {'k_min_scope': 'world'}])
def test_an_unknown_option_names_what_is_allowed(wrong):
    with pytest.raises(ValueError, match="must be '"):
        AnchorRule(**wrong)
