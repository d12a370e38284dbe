"""Lookup and late fusion against the direct implementation, and when TPA must leave the host alone."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close
from tpa_tools.benchmarking import direct

from tests.core.cases import RULES, SHAPES, both_labels, few, random_bank, random_scores
from tpa_mmseg.core import ClassProbabilities, DecisionRule, FusedScores, Fusion, Lookup, PrototypeBank, QueryScores

DIM = 16
#: Classes without a prototype, of six.
UNCOVERED = {'all covered': (), 'some uncovered': (0, 4), 'one covered': (0, 1, 2, 4, 5)}
#: Class of each of eight queries, for six classes.
QUERIES = [5, 0, 1, 2, 2, 3, 4, 0]
BINARY = DecisionRule(threshold=0.3)


def fused(host, bank, phi, **options) -> FusedScores:
    fusion = Fusion(**options)
    return FusedScores(host, Lookup(bank.prototypes(), phi, host.size, fusion.center), fusion)


def whole(lookup: Lookup, size: tuple[int, int], step: int = 7) -> torch.Tensor:
    return torch.cat([lookup.band(top, min(size[0], top + step)) for top in range(0, size[0], step)], 1)


@pytest.mark.parametrize('center', [True, False])
@pytest.mark.parametrize('uncovered', UNCOVERED.values(), ids=UNCOVERED)
@pytest.mark.parametrize('shape', SHAPES.values(), ids=SHAPES)
def test_lookup_is_the_cosine_of_upsampled_features(shape, uncovered, center):
    bank, phi = random_bank(6, DIM, uncovered), torch.randn(DIM, *shape.grid)
    vectors, covered = direct.prototypes(bank.sums, bank.counts), bank.counts > 0
    expected = direct.lookup(vectors, covered, phi.double(), shape.image, center)
    cosines = whole(Lookup(bank.prototypes(), phi, shape.image, center), shape.image)
    assert_close(cosines, expected.float(), atol=1e-5, rtol=0)
    assert not cosines[list(uncovered)].any()


def test_a_single_class_is_its_own_mean():
    bank, phi = random_bank(1, DIM), torch.randn(DIM, 3, 3)
    assert not whole(Lookup(bank.prototypes(), phi, (9, 9)), (9, 9)).any()
    assert whole(Lookup(bank.prototypes(), phi, (9, 9), center=False), (9, 9)).any()


def test_a_zero_feature_resembles_nothing():
    cosines = Lookup(random_bank(3, DIM).prototypes(), torch.zeros(DIM, 2, 2), (5, 5)).band(0, 5)
    assert not cosines.any()


@pytest.mark.parametrize('center', [True, False])
@pytest.mark.parametrize('uncovered', UNCOVERED.values(), ids=UNCOVERED)
@pytest.mark.parametrize('rule', RULES.values(), ids=RULES)
@pytest.mark.parametrize('shape', SHAPES.values(), ids=SHAPES)
def test_fused_labels_are_those_of_full_size_maps(shape, rule, uncovered, center):
    scores, phi = random_scores(8, shape.scores, spread=1.0), torch.randn(DIM, *shape.grid)
    bank = random_bank(6, DIM, uncovered)
    p, mass = direct.probabilities(direct.class_scores(direct.upsample(scores, shape.image), QUERIES))
    vectors, covered = direct.prototypes(bank.sums, bank.counts), bank.counts > 0
    log = direct.fuse(p, direct.lookup(vectors, covered, phi, shape.image, center), beta=2.5)

    ours = fused(QueryScores(scores, shape.image, QUERIES, rule), bank, phi, center=center)
    assert torch.equal(ours.labels(), direct.fused_labels(log, mass, rule))
    assert_close(ours.probabilities(), log.softmax(0), atol=1e-5, rtol=0)
    assert_close(ours.mass, mass, atol=1e-5, rtol=0)


def test_fused_labels_of_a_binary_head_are_those_of_full_size_maps():
    logit, phi, bank = random_scores(1, (6, 7)), torch.randn(DIM, 5, 4), random_bank(2, DIM)
    scores = torch.cat((torch.zeros_like(logit), logit))
    p = direct.class_scores(direct.upsample(scores, (25, 30)))
    cosines = direct.lookup(direct.prototypes(bank.sums, bank.counts), bank.counts > 0, phi, (25, 30))
    expected = direct.fused_labels(direct.fuse(p, cosines, 2.5), torch.ones(()), BINARY)
    assert torch.equal(fused(QueryScores(scores, (25, 30), rule=BINARY), bank, phi).labels(), expected)


@pytest.mark.parametrize('rule', RULES.values(), ids=RULES)
def test_fused_labels_of_scores_that_are_no_distribution_are_those_of_full_size_maps(rule):
    values, phi, bank = torch.rand(6, 5, 6).pow(2), torch.randn(DIM, 4, 4), random_bank(6, DIM)
    p, mass = direct.probabilities(direct.upsample(values, (22, 25)))
    cosines = direct.lookup(direct.prototypes(bank.sums, bank.counts), bank.counts > 0, phi, (22, 25))
    expected = direct.fused_labels(direct.fuse(p, cosines, 2.5), mass, rule)
    assert torch.equal(fused(ClassProbabilities(values, (22, 25), rule), bank, phi).labels(), expected)


@pytest.mark.parametrize(('alpha', 'lambda_', 'beta'), [(0.5, 5.0, 2.5), (0.0, 3.0, 3.0), (1.0, 5.0, 0.0)])
def test_beta_is_what_alpha_leaves_of_lambda(alpha, lambda_, beta):
    assert Fusion(alpha, lambda_).beta == beta


@pytest.mark.parametrize('rule', [*RULES.values(), BINARY], ids=[*RULES, 'binary'])
def test_both_labels_are_the_hosts_own_and_the_fused_ones(rule):
    classes = 2 if rule is BINARY else 6
    host = QueryScores(random_scores(classes, (5, 6)), (23, 27), rule=rule)
    bank, phi = random_bank(classes, DIM), torch.randn(DIM, 4, 4)
    alone, with_tpa = both_labels(host, bank, phi)
    assert torch.equal(alone, host.labels())
    assert torch.equal(with_tpa, fused(host, bank, phi).labels())
    assert not torch.equal(alone, with_tpa)


hosts = st.sampled_from(['queries', 'synonyms', 'probabilities', 'binary'])


def any_host(kind: str, rule: DecisionRule, scores: tuple[int, int], size: tuple[int, int]):
    if kind == 'binary':
        return QueryScores(torch.randn(2, *scores), size, rule=BINARY)
    if kind == 'probabilities':
        return ClassProbabilities(torch.rand(6, *scores), size, rule)
    queries = QUERIES if kind == 'synonyms' else None
    return QueryScores(torch.randn(8 if queries else 6, *scores), size, queries, rule)


@few
@given(
    kind=hosts,
    rule=st.sampled_from(list(RULES.values())),
    scores=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    size=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    decision=st.sampled_from(['host', 'argmax']),
    without=st.sampled_from(['an empty bank', 'alpha = 1']),
)
def test_without_prototypes_or_weight_the_labels_are_the_hosts_bit_for_bit(kind, rule, scores, size, decision, without):
    host = any_host(kind, rule, scores, size)
    bank = PrototypeBank(host.num_classes, DIM)
    if without == 'alpha = 1':
        bank = random_bank(host.num_classes, DIM)
    phi, options = torch.randn(DIM, 3, 2), {'alpha': 0.5 if without == 'an empty bank' else 1.0, 'decision': decision}
    alone, with_tpa = both_labels(host, bank, phi, **options)
    assert torch.equal(alone, host.labels())
    assert torch.equal(with_tpa, alone)
    assert torch.equal(fused(host, bank, phi, **options).labels(), alone)


def test_alpha_one_keeps_the_hosts_labels_even_where_the_features_are_not_finite():
    host, phi = QueryScores(random_scores(4, (3, 3)), (9, 9)), torch.full((DIM, 2, 2), float('nan'))
    assert torch.equal(fused(host, random_bank(4, DIM), phi, alpha=1.0).labels(), host.labels())


def test_fusion_by_argmax_ignores_the_hosts_thresholds():
    scores, phi, bank = random_scores(6, (5, 5)), torch.randn(DIM, 4, 4), random_bank(6, DIM)
    strict = QueryScores(scores, (20, 20), rule=DecisionRule(prob_thd=0.99, area_thd=0.9))
    assert not fused(strict, bank, phi).labels().any()
    plain = fused(QueryScores(scores, (20, 20)), bank, phi).labels()
    assert torch.equal(fused(strict, bank, phi, decision='argmax').labels(), plain)


@pytest.mark.parametrize('undefined', [float('nan'), float('inf'), float('-inf')])
@pytest.mark.parametrize('rule', RULES.values(), ids=RULES)
def test_a_pixel_without_a_distribution_keeps_the_hosts_label(rule, undefined):
    scores = random_scores(6, (8, 8))
    scores[4, 2, 3] = scores[1, 2, 3] = undefined
    scores[:, 5, 6] = undefined
    if undefined < 0:
        scores[:5, 2, 3] = undefined  # what is impossible stays so: only one class is left
    host = QueryScores(scores, (8, 8), rule=rule)
    alone, with_tpa = both_labels(host, random_bank(6, DIM), torch.randn(DIM, 4, 4))
    for pixel in ((2, 3), (5, 6)):
        assert alone[pixel] == with_tpa[pixel]


def test_a_pixel_where_the_host_scores_nothing_keeps_the_hosts_label():
    values = torch.rand(6, 8, 8)
    values[:, 2, 3] = 0
    alone, with_tpa = both_labels(ClassProbabilities(values, (8, 8)), random_bank(6, DIM), torch.randn(DIM, 4, 4))
    assert alone[2, 3] == with_tpa[2, 3] == 0


def test_a_probability_of_zero_can_be_overruled_like_any_small_one():
    """log p is clamped, so that one class at zero leaves the others as they are."""
    values = torch.tensor([0.0, 0.5, 0.5])[:, None, None]
    ours = fused(ClassProbabilities(values, (1, 1)), random_bank(3, DIM), torch.randn(DIM, 1, 1))
    assert ours.probabilities().isfinite().all()
    assert ours.labels().item() in (1, 2)


@pytest.mark.parametrize('rule', RULES.values(), ids=RULES)
def test_fused_labels_do_not_depend_on_the_band_size(rule, monkeypatch):
    scores, phi, bank = random_scores(6, (5, 7)), torch.randn(DIM, 4, 6), random_bank(6, DIM, (2,))
    labels = []
    for elements in (1, 6 * 30 * 2, 6 * 30 * 7, 1 << 20):
        monkeypatch.setattr('tpa_mmseg.core.bilinear._BAND_ELEMENTS', {'cpu': elements})
        labels.append(fused(QueryScores(scores, (26, 30), rule=rule), bank, phi).labels())
    assert all(torch.equal(labels[0], other) for other in labels[1:])


def test_a_bank_of_other_classes_is_refused():
    host = QueryScores(random_scores(4, (3, 3)), (9, 9))
    with pytest.raises(ValueError, match='the bank has 3 classes, the host 4'):
        fused(host, random_bank(3, DIM), torch.randn(DIM, 2, 2))


@pytest.mark.parametrize('wrong', [{'alpha': 1.2}, {'alpha': -0.1}, {'decision': 'vote'}])
def test_an_option_out_of_range_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)) + ' must be'):
        Fusion(**wrong)
