"""Any number of settings of TPA from one sweep, each with the labels it has alone."""

from __future__ import annotations

import pytest
import torch

from tests.core.cases import RULES, random_bank, random_scores
from tpa_mmseg.core import ENCODER, Adapter, AnchorRule, Evidence, Fusion, Lookup, PrototypeBank, QueryScores, decide
from tpa_mmseg.core.fusion import FusedScores

SIZE, CLASSES, DIM = (37, 29), 6, 12
QUERIES = [0, 1, 2, 3, 4, 5, 5, 2]
OTHER = 'other'


def evidence_of(rule, name: str = 'a.png') -> Evidence:
    scores = QueryScores(random_scores(8, (5, 6)), SIZE, QUERIES, rule)
    return Evidence(scores, {ENCODER: torch.randn(DIM, 4, 5), OTHER: torch.randn(7, 6, 6)}, name)


def adapters() -> list[Adapter]:
    one, two = random_bank(CLASSES, DIM), random_bank(CLASSES, DIM, uncovered=(0, 3))
    return [
        Adapter(one.prototypes()),
        Adapter(two.prototypes(), Fusion(alpha=0.2, lambda_=9.0)),
        Adapter(two.prototypes(), Fusion(center=False, decision='argmax')),
        Adapter(one.prototypes(), Fusion(alpha=1.0)),
        Adapter(None, Fusion(lambda_=20.0), AnchorRule(k=1.2, k_min=1)),
        Adapter(None, Fusion(lambda_=20.0), AnchorRule(k=1.2, k_min=1, random=True)),
        Adapter(random_bank(CLASSES, 7).prototypes(), Fusion(lambda_=9.0), encoder=OTHER),
    ]


@pytest.mark.parametrize('rule', RULES.values(), ids=RULES)
def test_together_every_adapter_has_the_labels_it_has_alone(rule):
    evidence, settings = evidence_of(rule), adapters()
    host, adapted = decide(evidence, settings)
    assert torch.equal(host, evidence.scores.labels())
    for labels, adapter in zip(adapted, settings, strict=True):
        assert torch.equal(labels, decide(evidence, [adapter]).adapted[0])
        assert torch.equal(labels, adapter.fuse(evidence).labels())
    assert len({labels.numpy().tobytes() for labels in adapted}) >= 5


def test_a_lookup_is_fused_as_the_method_says():
    evidence, bank = evidence_of(RULES['prob_thd']), random_bank(CLASSES, DIM)
    lookup = Lookup(bank.prototypes(), evidence.features[ENCODER], SIZE)
    expected = FusedScores(evidence.scores, lookup, Fusion()).labels()
    assert torch.equal(decide(evidence, [Adapter(bank.prototypes())]).adapted[0], expected)


def test_without_a_bank_an_image_is_its_own_pool():
    evidence, rule = evidence_of(RULES['argmax']), AnchorRule(k=1.2, k_min=1, random=True)
    bank = PrototypeBank(CLASSES, DIM, rule)
    bank.update(evidence.scores, evidence.features[ENCODER], evidence.seed)
    own, pooled = Adapter(None, anchors=rule), Adapter(bank.prototypes())
    first, second = decide(evidence, [own, pooled]).adapted
    assert torch.equal(first, second)


@pytest.mark.parametrize('rule', RULES.values(), ids=RULES)
def test_small_integers_hold_the_same_labels(rule):
    evidence, settings = evidence_of(rule), adapters()
    wide, narrow = decide(evidence, settings), decide(evidence, settings, torch.uint8)
    for a, b in zip((wide.host, *wide.adapted), (narrow.host, *narrow.adapted), strict=True):
        assert b.dtype == torch.uint8
        assert torch.equal(a, b.long())


def test_a_bank_adds_evidence_as_its_parts():
    evidence, rule = evidence_of(RULES['argmax']), AnchorRule(k=1.2, k_min=1, random=True)
    parts, whole = PrototypeBank(CLASSES, 7, rule), PrototypeBank(CLASSES, 7, rule, encoder=OTHER)
    parts.update(evidence.scores, evidence.features[OTHER], evidence.seed)
    assert torch.equal(whole.add(evidence), whole.counts)
    assert torch.equal(parts.sums, whole.sums)
    coverage = whole.coverage()
    assert coverage.images == 1 and coverage.anchors == tuple(whole.counts.tolist())
    assert coverage.covered == tuple((whole.counts > 0).tolist())
