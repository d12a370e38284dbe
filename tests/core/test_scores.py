"""ScoreMap: probabilities, mass and labels against whole maps at full size."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close
from tpa_tools.benchmarking import direct

from tests.core.cases import RULES, SHAPES, few, random_scores
from tpa_mmseg.core import ClassProbabilities, DecisionRule, QueryScores, Resized
from tpa_mmseg.core.decision import best_class

#: Which class each of eight queries belongs to.
SYNONYMS = {
    'one query per class': None,
    'synonyms side by side': [0, 0, 0, 1, 2, 3, 3, 4],
    'synonyms in any order': [3, 0, 4, 1, 0, 2, 3, 0],
    'classes in another order': [7, 6, 5, 4, 3, 2, 1, 0],
    'one class': [0] * 8,
}


@pytest.fixture(params=SYNONYMS.values(), ids=SYNONYMS)
def query_to_class(request):
    return request.param


@pytest.mark.parametrize('rule', RULES.values(), ids=RULES)
@pytest.mark.parametrize('shape', SHAPES.values(), ids=SHAPES)
def test_labels_are_those_of_full_size_maps(shape, rule, query_to_class):
    scores = random_scores(8, shape.scores)
    full = direct.class_scores(direct.upsample(scores, shape.image), query_to_class)
    assert torch.equal(QueryScores(scores, shape.image, query_to_class, rule).labels(), direct.decide(full, rule))


@pytest.mark.parametrize('rule', RULES.values(), ids=RULES)
def test_labels_of_scores_that_are_not_a_distribution_are_those_of_full_size_maps(rule):
    values = torch.rand(5, 7, 9).pow(3)
    full = direct.upsample(values, (31, 26))
    assert torch.equal(ClassProbabilities(values, (31, 26), rule).labels(), direct.decide(full, rule))


@pytest.mark.parametrize('shape', SHAPES.values(), ids=SHAPES)
def test_probabilities_and_mass_are_those_of_full_size_maps(shape, query_to_class):
    scores = random_scores(8, shape.scores)
    expected, mass = direct.probabilities(
        direct.class_scores(direct.upsample(scores, shape.image), query_to_class),
    )
    decoded = QueryScores(scores, shape.image, query_to_class)
    assert_close(decoded.probabilities(), expected, atol=1e-5, rtol=0)
    assert_close(decoded.mass, mass, atol=1e-5, rtol=0)


def test_probabilities_and_mass_of_scores_that_are_not_a_distribution():
    values = torch.rand(5, 7, 9)
    expected, mass = direct.probabilities(direct.upsample(values, (20, 30)))
    decoded = ClassProbabilities(values, (20, 30))
    assert_close(decoded.probabilities(), expected, atol=1e-5, rtol=0)
    assert_close(decoded.mass, mass, atol=1e-5, rtol=0)


def test_log_band_is_the_logarithm_of_the_probabilities_up_to_a_constant_per_pixel(query_to_class):
    decoded = QueryScores(random_scores(8, (4, 5)), (16, 15), query_to_class)
    difference = decoded.log_band(3, 9) - decoded.band(3, 9).log()
    assert_close(difference, difference[:1].expand_as(difference), atol=1e-5, rtol=0)


def test_scores_of_several_resizes_are_decoded_like_tensors():
    scores = random_scores(6, (4, 5))
    twice = direct.upsample(direct.upsample(scores, (21, 17), True), (40, 33), True)
    decoded = QueryScores(Resized(scores, (21, 17), True), (40, 33), align_corners=True)
    assert torch.equal(decoded.labels(), direct.decide(direct.class_scores(twice)))


@pytest.mark.parametrize('threshold', [0.3, 0.5, 0.8])
def test_a_binary_head_decides_by_its_threshold(threshold):
    logit = random_scores(1, (6, 7))
    scores = torch.cat((torch.zeros_like(logit), logit))
    labels = QueryScores(scores, (24, 30), rule=DecisionRule(threshold=threshold)).labels()
    assert torch.equal(labels, (direct.upsample(logit, (24, 30))[0].sigmoid() > threshold).long())


def test_prob_thd_reads_the_scores_before_they_are_brought_to_the_simplex():
    # Two synonyms share the softmax: the class scores 0.45 of a mass of 0.55, which is 0.82 of it.
    scores = torch.tensor([0.10, 0.45, 0.45]).log()[:, None, None]
    labels = [
        QueryScores(scores, (1, 1), [0, 1, 1], DecisionRule(prob_thd=threshold)).labels().item()
        for threshold in (0.44, 0.46)
    ]
    assert labels == [1, 0]


def test_area_thd_counts_a_share_of_the_foreground_and_sends_pixels_to_the_next_best_class():
    # 20 pixels: 10 background, 9 of class 1, and one of class 2 whose next best class is 1.
    scores = torch.zeros(3, 1, 20)
    scores[0, 0, :10] = 5
    scores[1, 0, 10:19] = 5
    scores[2, 0, 19], scores[1, 0, 19] = 5, 4
    labels = [
        QueryScores(scores, (1, 20), rule=DecisionRule(area_thd=share)).labels()[0, 19].item() for share in (0.09, 0.1)
    ]
    assert labels == [2, 1]


def test_area_thd_never_strikes_the_background():
    scores = torch.zeros(3, 1, 10)
    scores[0, 0, 0] = 5
    scores[1, 0, 1:] = 5
    assert QueryScores(scores, (1, 10), rule=DecisionRule(area_thd=0.5)).labels()[0, 0] == 0


@pytest.mark.parametrize('rule', RULES.values(), ids=RULES)
@pytest.mark.parametrize('kind', [QueryScores, ClassProbabilities])
def test_decoding_never_changes_the_scores_it_is_given(kind, rule):
    scores = torch.rand(4, 9, 8)
    before = scores.clone()
    decoded = kind(scores, (9, 8), rule=rule)
    decoded.labels()
    decoded.log_band(0, 9).fill_(-1)
    decoded.band(0, 9).fill_(-1)
    assert torch.equal(scores, before)


def test_decoding_never_changes_the_rows_of_another_source():
    class Rows:
        """A source that keeps its map, gives it away as it is, and has a shape that is no tuple."""

        def __init__(self, values):
            self.values, self.shape, self.device = values, list(values.shape), values.device

        def rows(self, top, bottom):
            return self.values[:, top:bottom]

    source = Rows(torch.randn(4, 9, 8))
    before = source.values.clone()
    QueryScores(source, (9, 8)).log_band(0, 9).fill_(-1)
    assert torch.equal(source.values, before)


@pytest.mark.parametrize('undefined', [float('nan'), float('inf'), float('-inf')])
def test_a_pixel_with_a_non_finite_score_gets_the_label_of_an_argmax(undefined):
    scores = random_scores(5, (3, 4))
    scores[2, 1, 1] = undefined
    scores[3, 1, 2] = scores[1, 1, 2] = undefined
    scores[:, 2, 2] = undefined
    assert torch.equal(QueryScores(scores, (3, 4)).labels(), scores.argmax(0))


@pytest.mark.parametrize('undefined', [float('nan'), float('inf')])
def test_area_thd_leaves_a_pixel_without_a_distribution_as_it_is(undefined):
    scores = random_scores(5, (3, 4))
    scores[2, 1, 1] = undefined
    labels = QueryScores(scores, (3, 4), rule=DecisionRule(area_thd=0.9)).labels()
    assert labels[1, 1] == 2
    assert labels.sum() == 2  # every other class above 0 is struck


def test_a_pixel_without_any_score_has_no_distribution_and_label_zero():
    values = torch.rand(3, 2, 2)
    values[:, 0, 1] = 0
    decoded = ClassProbabilities(values, (2, 2), DecisionRule(prob_thd=0.3))
    assert decoded.labels()[0, 1] == 0
    assert decoded.probabilities()[:, 0, 1].isnan().all()
    assert decoded.mass[0, 1] == 0


def test_a_nan_among_scores_that_are_no_distribution_leaves_the_other_pixels_alone():
    values = torch.rand(3, 4, 4)
    values[1, 2, 2] = float('nan')
    decoded = ClassProbabilities(values, (4, 4))
    assert torch.equal(decoded.labels(), values.argmax(0))
    assert decoded.probabilities().isnan().any(0).sum() == 1


@pytest.mark.parametrize('rule', RULES.values(), ids=RULES)
def test_labels_do_not_depend_on_the_band_size(rule, monkeypatch):
    scores = random_scores(6, (5, 7))
    labels = set()
    for elements in (1, 6 * 30 * 2, 6 * 30 * 7, 1 << 20):
        monkeypatch.setattr('tpa_mmseg.core.bilinear._BAND_ELEMENTS', {'cpu': elements})
        labels.add(tuple(QueryScores(scores, (26, 30), [0, 1, 1, 2, 3, 0], rule).labels().flatten().tolist()))
    assert len(labels) == 1


@few
@given(
    classes=st.integers(1, 9),
    rows=st.integers(1, 3),
    width=st.integers(1, 40),
    odd=st.lists(st.sampled_from([float('nan'), float('inf'), float('-inf')]), max_size=4),
)
def test_best_class_is_what_max_gives(classes, rows, width, odd):
    # Integers: many ties, of which the first class wins.
    log = torch.randint(-2, 3, (classes, rows, width)).float()
    log.view(-1)[torch.randint(0, log.numel(), (len(odd),))] = torch.tensor(odd)
    best, label = best_class(log)
    expected = log.max(0)
    assert torch.equal(label, expected.indices)
    assert_close(best, expected.values, atol=0, rtol=0, equal_nan=True)


@pytest.mark.parametrize('classes', [[0, 1], [0, 1, 3], [0, 0, 2]])
def test_query_to_class_must_name_every_class_and_every_query(classes):
    with pytest.raises(ValueError, match='query_to_class'):
        QueryScores(torch.zeros(3, 2, 2), (2, 2), classes)


def test_a_binary_threshold_goes_with_no_other_rule():
    with pytest.raises(ValueError, match='excludes'):
        DecisionRule(prob_thd=0.1, threshold=0.3)
