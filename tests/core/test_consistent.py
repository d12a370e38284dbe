"""Labels of consistent TPA are those of its formulas at every pixel, and the paper's where it adds nothing."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch
import torch.nn.functional as F

from tests.core.cases import RULES, SHAPES, random_scores
from tpa_mmseg.core import ENCODER, Adapter, AnchorRule, Evidence, Fusion, PrototypeBank, QueryScores, bilinear, decide
from tpa_mmseg.core import scores as score_maps
from tpa_mmseg.core.bank_file import read_bank
from tpa_mmseg.core.centered import SecondTerm
from tpa_mmseg.core.diagnosis import Diagnosis, measured_with
from tpa_mmseg.errors import TPAError

CLASSES, DIM, GATE = 5, 7, 0.15


def bank_of(images: Iterable[int] = range(6), uncovered: int | None = 3) -> PrototypeBank:
    bank = PrototypeBank(CLASSES, DIM, AnchorRule(k=1.1, k_min=1))
    for number in images:
        torch.manual_seed(number)
        maps = QueryScores(random_scores(CLASSES, (6, 6)), (18, 18))
        bank.add(Evidence(maps, {ENCODER: torch.randn(DIM, 6, 6) + 1}, f'{number}.jpg'))
    if uncovered is not None:
        for part in (bank.sums, bank.counts, bank.half_sums, bank.half_counts):
            part[uncovered] = 0
    return bank


def direct_scores(bank: PrototypeBank, evidence: Evidence, beta: float, beta2: float) -> torch.Tensor:
    """(C, H, W) log p + beta q~ + beta2 q2, with all features upsampled."""
    covered = [c for c in range(CLASSES) if bank.counts[c] > 0]
    means = {c: bank.sums[c] / bank.counts[c] for c in covered}
    root = {c: bank.counts[c].double().sqrt() for c in covered}
    center = sum(root[c] * means[c] for c in covered) / sum(root.values())
    up = F.interpolate(evidence.features[ENCODER].double()[None], evidence.scores.size, mode='bilinear')[0]
    away = F.normalize(up - center[:, None, None], dim=0)
    second = {c: torch.einsum('d,dhw->hw', F.normalize(means[c] - center, dim=0), away) for c in covered}
    lowest = torch.stack(list(second.values())).amin(0)
    first = {c: torch.einsum('d,dhw->hw', F.normalize(bank.sums[c], dim=0), F.normalize(up, dim=0)) for c in covered}
    mean = sum(first.values()) / len(covered)
    log = evidence.scores.probabilities().double().log()
    share = [(log.argmax(0) == c).double().mean() for c in range(CLASSES)]
    return torch.stack(
        [
            log[c]
            + beta * (first[c] - mean if c in covered else 0)
            + beta2 * (second[c] if c in covered and share[c] > GATE else lowest)
            for c in range(CLASSES)
        ]
    )


def evidence_of(shape, rule='argmax') -> Evidence:
    maps = QueryScores(random_scores(CLASSES, shape.scores, 1.0), shape.image, rule=RULES[rule])
    return Evidence(maps, {ENCODER: torch.randn(DIM, *shape.grid) + 1}, 'test.jpg')


@pytest.mark.parametrize('uncovered', [None, 3])
@pytest.mark.parametrize('shape', SHAPES.values(), ids=SHAPES)
def test_labels_are_those_of_the_formulas(shape, uncovered):
    bank, evidence = bank_of(uncovered=uncovered), evidence_of(shape)
    adapter = Adapter(bank.prototypes(), Fusion(), second=SecondTerm(bank.centered_prototypes(), 3.0, GATE))
    expected = direct_scores(bank, evidence, 2.5, 3.0)
    best, runner_up = expected.topk(2, dim=0).values
    sure = best - runner_up > 1e-4
    (labels,) = decide(evidence, [adapter]).adapted
    assert torch.equal(labels[sure], expected.argmax(0)[sure])
    assert sure.float().mean() > 0.99


@pytest.mark.parametrize('rule', RULES)
def test_probabilities_and_the_hosts_rule_hold_as_well(rule):
    bank, evidence = bank_of(), evidence_of(SHAPES['not square'], rule)
    adapter = Adapter(bank.prototypes(), Fusion(), second=SecondTerm(bank.centered_prototypes(), 3.0, GATE))
    expected = direct_scores(bank, evidence, 2.5, 3.0).softmax(0)
    torch.testing.assert_close(adapter.fuse(evidence).probabilities().double(), expected, atol=1e-5, rtol=1e-4)
    host, (labels,) = decide(evidence, [adapter])
    assert torch.equal(host, decide(evidence).host)
    assert torch.equal(labels, adapter.fuse(evidence).labels())


def test_many_classes_in_parts_have_the_same_labels(monkeypatch):
    bank, evidence = bank_of(), evidence_of(SHAPES['not square'])
    adapter = Adapter(bank.prototypes(), Fusion(), second=SecondTerm(bank.centered_prototypes(), 3.0, GATE))
    whole = decide(evidence, [adapter])
    monkeypatch.setattr(score_maps, '_SMALLEST_PART', 2)
    monkeypatch.setattr(bilinear, '_BAND_ELEMENTS', {'cpu': 60})
    assert len(list(evidence.scores.parts())) > 1
    parts = decide(evidence, [adapter])
    assert torch.equal(parts.adapted[0], whole.adapted[0])


@pytest.mark.parametrize('rule', RULES)
def test_a_diagnosis_of_zero_is_the_papers_tpa_bit_for_bit(rule):
    bank, fusion = bank_of(), Fusion(consistent=True)
    bank.diagnosis = Diagnosis(0.9, 0.95, 0.8, 4.0, 0.0, 100, measured_with(fusion))
    assert bank.second_term(fusion) is None
    for shape in SHAPES.values():
        evidence = evidence_of(shape, rule)
        paper = Adapter(bank.prototypes(), Fusion())
        ours = Adapter(bank.prototypes(), fusion, second=bank.second_term(fusion))
        for one, other in zip(decide(evidence, [paper]), decide(evidence, [ours]), strict=True):
            assert torch.equal(torch.stack([*one]), torch.stack([*other]))


def test_a_bank_keeps_two_halves_whose_sum_is_the_papers():
    bank = bank_of(range(12), None)
    names = [f'{number}.jpg' for number in range(12)]
    halves = [Evidence(evidence_of(SHAPES['square']).scores, {}, name).half for name in names]
    assert set(halves) == {0, 1}
    assert 0 < bank.half_counts.sum() < bank.counts.sum()


def test_merged_and_extended_banks_are_those_built_at_once(tmp_path):
    whole, merged = bank_of(range(12), None), bank_of(range(5), None)
    merged.merge(bank_of(range(5, 9), None))
    merged.save(tmp_path / 'bank.safetensors')
    merged = PrototypeBank.load(tmp_path / 'bank.safetensors')
    merged.merge(bank_of(range(9, 12), None))
    assert torch.equal(merged.counts, whole.counts) and torch.equal(merged.half_counts, whole.half_counts)
    torch.testing.assert_close(merged.half_sums, whole.half_sums, rtol=1e-12, atol=1e-12)
    one, other = whole.centered_prototypes(), merged.centered_prototypes()
    torch.testing.assert_close(one.vectors, other.vectors, rtol=1e-9, atol=1e-12)
    assert one.reproducibility == pytest.approx(other.reproducibility, abs=1e-9)


def test_a_saved_bank_keeps_its_halves_and_its_diagnosis(tmp_path):
    bank = bank_of()
    bank.diagnosis = Diagnosis(0.3, 0.9, 0.8, 4.0, 2.0, 100, measured_with(Fusion(consistent=True)))
    bank.save(tmp_path / 'bank.safetensors')
    again = PrototypeBank.load(tmp_path / 'bank.safetensors')
    _, about = read_bank(tmp_path / 'bank.safetensors')
    assert about['fingerprint']['diagnosis']['beta2'] == 2.0
    assert again.diagnosis == bank.diagnosis
    assert torch.equal(again.half_sums, bank.half_sums) and torch.equal(again.half_counts, bank.half_counts)
    assert again.second_term(Fusion(consistent=True)).beta2 == 2.0


def test_another_image_or_another_fusion_ends_a_diagnosis():
    bank, fusion = bank_of(), Fusion(consistent=True)
    bank.diagnosis = Diagnosis(0.3, 0.9, 0.8, 4.0, 2.0, 100, measured_with(fusion))
    with pytest.raises(TPAError, match='look at the pool again'):
        bank.second_term(Fusion(alpha=0.2, consistent=True))
    bank.add(evidence_of(SHAPES['square']))
    with pytest.raises(TPAError, match='look at the pool again'):
        bank.second_term(fusion)
    assert bank.second_term(Fusion()) is None


def test_constants_are_options_with_limits():
    assert Fusion(consistent=dict(eta=0.7)).consistency.eta == 0.7
    with pytest.raises(ValueError, match='gate must be'):
        Fusion(consistent=dict(gate=2))


def test_a_feature_at_the_center_itself_adds_nothing_large():
    bank = bank_of(uncovered=None)
    term = SecondTerm(bank.centered_prototypes(), 3.0, 0.0)
    phi = 100 * term.prototypes.center.float()[:, None, None].expand(DIM, 4, 4)
    bank.sums, bank.half_sums = 100 * bank.sums, 100 * bank.half_sums
    evidence = Evidence(QueryScores(random_scores(CLASSES, (4, 4)), (12, 12)), {ENCODER: phi}, 'flat.jpg')
    adapter = Adapter(bank.prototypes(), Fusion(), second=SecondTerm(bank.centered_prototypes(), 3.0, 0.0))
    added = torch.zeros(CLASSES, 12, 12)
    adapter.fuse(evidence).second.add_to(added, 0)
    assert added.abs().max() < 3


def test_parts_of_the_rule_can_be_left_out():
    bank, evidence = bank_of(uncovered=None), evidence_of(SHAPES['square'])
    assert torch.equal(bank.centered_prototypes(around_center=False).center, torch.zeros(DIM).double())
    fusion = Fusion(consistent=dict(beta2=8.0, gate=0.0))
    bank.diagnosis = Diagnosis(0.3, 0.9, 0.8, 4.0, 8.0, 100, measured_with(fusion))
    lookup = Adapter(bank.prototypes(), fusion, second=bank.second_term(fusion)).fuse(evidence).second
    assert lookup.classes == tuple(range(CLASSES))
    assert bank.second_term(fusion).beta2 == 8
