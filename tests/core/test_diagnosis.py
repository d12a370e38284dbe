"""Consistent TPA against a direct implementation of its formulas, point by point."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from tests.core.cases import random_scores
from tpa_mmseg.core import ENCODER, AnchorRule, Evidence, Fusion, PrototypeBank
from tpa_mmseg.core.centered import Consistency
from tpa_mmseg.core.diagnosis import WEIGHTS, ConsistencySums, Diagnosis, gated
from tpa_mmseg.core.scores import QueryScores

CLASSES, DIM = 4, 6


def image(number: int, grid=(5, 6), size=(20, 24), spread=3.0) -> Evidence:
    torch.manual_seed(number)
    scores = QueryScores(random_scores(CLASSES, grid, spread), size)
    return Evidence(scores, {ENCODER: torch.randn(DIM, *grid) + 1}, f'{number}.jpg')


def halves_of(images: list[Evidence]) -> tuple[torch.Tensor, torch.Tensor]:
    banks = [PrototypeBank(CLASSES, DIM, AnchorRule(k=1.2)) for _ in range(2)]
    for number, evidence in enumerate(images):
        banks[number % 2].add(evidence)
    return torch.stack([bank.sums for bank in banks]), torch.stack([bank.counts for bank in banks])


def naive_centered(sums, counts, k_min=5):
    covered = [c for c in range(CLASSES) if counts[:, c].sum() > 0]
    mean = {c: sums[:, c].sum(0) / counts[:, c].sum() for c in covered}
    root = {c: math.sqrt(counts[:, c].sum()) for c in covered}
    center = sum(root[c] * mean[c] for c in covered) / sum(root.values())
    vectors = {c: (mean[c] - center) / (mean[c] - center).norm() for c in covered}
    expected = []
    for c in covered:
        if min(counts[0, c], counts[1, c]) < k_min:
            expected.append(0.0)
            continue
        one, two = (sums[h, c] / counts[h, c] - center for h in range(2))
        a = float(one @ two / one.norm() / two.norm())
        expected.append(min(1.0, max(0.0, 2 * a / (1 + a))))
    return covered, vectors, center, sum(expected) / len(expected)


def naive_kappa(fields, neighbors):
    """(A - E) / (N - E). Args: fields: labels of each image; neighbors: of each point of each image."""
    agreement = chance = points = 0.0
    for labels, near in zip(fields, neighbors, strict=True):
        kept = [x for x in range(len(labels)) if near[x]]
        agreement += sum(sum(labels[j] == labels[x] for j in near[x]) / len(near[x]) for x in kept)
        shares = [sum(labels[x] == c for x in kept) / len(kept) for c in range(CLASSES)]
        chance += len(kept) * sum(share**2 for share in shares)
        points += len(kept)
    return (agreement - chance) / (points - chance)


def naive_points(evidence, covered, vectors, center, constants, prototypes, beta):
    """log p, the paper's fused scores and the gated second cosines at each patch, and the neighbors of each patch."""
    phi = evidence.features[ENCODER].double()
    height, width = phi.shape[1:]
    full = evidence.scores.probabilities().double()
    grid = F.interpolate(full[None], (height, width), mode='bilinear')[0]
    share = full.argmax(0).flatten().bincount(minlength=CLASSES) / full[0].numel()
    opened = [c for c in covered if share[c] > constants.gate]
    log, fused, second, near = [], [], [], []
    place = [((y + 0.5) / height, (x + 0.5) / width) for y in range(height) for x in range(width)]
    flat = phi.flatten(1).T
    away = [(point - center) / (point - center).norm() for point in flat]
    mean = sum(prototypes[c] for c in covered) / len(covered)
    for x in range(len(flat)):
        log.append(grid[:, x // width, x % width].log())
        unit = flat[x] / flat[x].norm()
        first = torch.tensor([float((prototypes[c] - mean) @ unit) if c in covered else 0.0 for c in range(CLASSES)])
        fused.append(log[-1] + beta * first)
        cosines = {c: float(vectors[c] @ away[x]) for c in covered}
        second.append(torch.tensor([cosines[c] if c in opened else min(cosines.values()) for c in range(CLASSES)]))
        others = [j for j in range(len(flat)) if math.dist(place[x], place[j]) > constants.distance]
        near.append(sorted(others, key=lambda j: -float(away[x] @ away[j]))[: constants.neighbors])
    return log, fused, second, near, opened


def naive_diagnosis(images, sums, counts, fusion, constants) -> Diagnosis:
    covered, vectors, center, rho = naive_centered(sums, counts)
    prototypes = {c: F.normalize(sums[:, c].sum(0), dim=0) for c in covered}
    points = [naive_points(e, covered, vectors, center, constants, prototypes, fusion.beta) for e in images]
    neighbors = [near for *_, near, _ in points]
    spread = [sum(float(v.std()) for part in points for v in part[index]) for index in (0, 2)]
    unit = spread[0] / spread[1]
    kappa = []
    for weight in WEIGHTS:
        fields = [[int((f + weight * s).argmax()) for f, s in zip(p[1], p[2], strict=True)] for p in points]
        kappa.append(naive_kappa(fields, neighbors))
    alone = [[max(p[4], key=lambda c: float(s[c])) for s in p[2]] for p in points]
    limit = constants.most * unit
    highest = max(naive_kappa(alone, neighbors), *(k for w, k in zip(WEIGHTS, kappa, strict=True) if w <= limit))
    needed = limit
    for low, high, before, after in zip(WEIGHTS, WEIGHTS[1:], kappa, kappa[1:], strict=False):
        if kappa[0] >= constants.eta * highest:
            needed = 0.0
            break
        if after >= constants.eta * highest:
            needed = min(limit, low + (high - low) * (constants.eta * highest - before) / (after - before))
            break
    beta2 = min(needed, constants.most * rho**2 * unit)
    return Diagnosis(kappa[0], highest, rho, unit, beta2, sum(len(p[0]) for p in points))


def collector(sums, counts, fusion: Fusion) -> ConsistencySums:
    bank = PrototypeBank(CLASSES, DIM)
    bank.sums, bank.counts = sums.sum(0), counts.sum(0)
    bank.half_sums, bank.half_counts = sums[0], counts[0]
    return ConsistencySums(bank.prototypes(), bank.centered_prototypes(), fusion)


def diagnose(images, sums, counts, **fusion) -> Diagnosis:
    collected = collector(sums, counts, Fusion(**fusion))
    for evidence in images:
        collected.add(evidence, ENCODER)
    return collected.diagnosis()


@pytest.mark.parametrize('constants', [Consistency(), Consistency(gate=0.2, neighbors=3, distance=0.3, eta=0.6)])
@pytest.mark.parametrize('spread', [0.5, 3.0])
def test_everything_equals_the_formulas(spread, constants):
    images = [image(number, spread=spread) for number in range(6)]
    sums, counts = halves_of(images)
    ours = diagnose(images, sums, counts, consistent=constants)
    theirs = naive_diagnosis(images, sums, counts, Fusion(), constants)
    assert ours.points == theirs.points
    for name in ('kappa_0', 'kappa_inf', 'rho', 'unit', 'beta2'):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=1e-5), name


def test_consistent_labels_have_kappa_one_and_random_labels_about_zero():
    means = torch.eye(DIM)[:CLASSES] * 8

    def evidence(number: int, follows: bool) -> Evidence:
        torch.manual_seed(number)
        truth = torch.randint(CLASSES, (8, 8))
        told = truth if follows else torch.randint(CLASSES, (8, 8))
        scores = QueryScores(20 * F.one_hot(told, CLASSES).permute(2, 0, 1).float(), (8, 8))
        phi = means[truth].permute(2, 0, 1) + 0.1 * torch.randn(DIM, 8, 8)
        return Evidence(scores, {ENCODER: phi}, f'{number}.jpg')

    for follows, expected in ((True, 1.0), (False, 0.0)):
        images = [evidence(number, follows) for number in range(8)]
        found = diagnose(images, *halves_of([evidence(number, True) for number in range(8)]), alpha=1.0)
        assert found.kappa_0 == pytest.approx(expected, abs=0.05)
        assert found.kappa_inf == pytest.approx(1.0, abs=0.01)
        assert (found.beta2 == 0) == follows
        assert ('fixed weight fits' in found.describe()) == follows


def test_sums_of_parts_are_the_sums_of_the_whole():
    images = [image(number) for number in range(6)]
    sums, counts = halves_of(images)
    whole, *parts = (collector(sums, counts, Fusion()) for _ in range(3))
    for number, evidence in enumerate(images):
        whole.add(evidence, ENCODER)
        parts[number % 2].add(evidence, ENCODER)
    torch.testing.assert_close(parts[0].values + parts[1].values, whole.values, rtol=1e-12, atol=0)


def test_a_closed_class_gets_the_lowest_cosine_of_any_covered_class():
    cosines = torch.tensor([[0.9, 0.1], [0.2, 0.3], [0.0, 0.0], [-0.5, 0.7]])
    covered = torch.tensor([True, True, False, True])
    opened = torch.tensor([True, False, False, False])
    assert gated(cosines, covered, opened).tolist() == [
        pytest.approx([0.9, 0.1]),
        *[pytest.approx([-0.5, 0.1])] * 3,
    ]


def test_a_bank_of_one_class_or_none_changes_nothing():
    images = [image(number) for number in range(2)]
    for covered in (0, 1):
        sums, counts = torch.zeros(2, CLASSES, DIM, dtype=torch.float64), torch.zeros(2, CLASSES, dtype=torch.int64)
        sums[:, :covered], counts[:, :covered] = 1.0, 10
        found = diagnose(images, sums, counts)
        assert found.beta2 == 0 and math.isfinite(found.kappa_0)


def test_an_image_of_one_patch_says_nothing():
    found = diagnose([image(0, grid=(1, 1))], *halves_of([image(number) for number in range(4)]))
    assert found.points == 0 and found.beta2 == 0 and 'not known' in found.describe()


def test_the_sentence_tells_a_small_pool_from_labels_that_follow():
    made_with = {'eta': 0.85}
    assert 'a larger pool' in Diagnosis(0.3, 0.9, 0.0, 4.0, 0.0, 9, made_with).describe()
    assert 'a larger weight' in Diagnosis(0.3, 0.9, 0.9, 4.0, 2.0, 9, made_with).describe()
    assert 'fixed weight fits' in Diagnosis(0.8, 0.9, 0.0, 4.0, 0.0, 9, made_with).describe()
