"""PrototypeBank: sums against the direct implementation, and what it means to be additive."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch.testing import assert_close
from tpa_tools.benchmarking import direct

from tests.core.cases import SHAPES, few, random_bank, random_scores
from tpa_mmseg.core import ENCODER, AnchorRule, Evidence, PrototypeBank, QueryScores
from tpa_mmseg.errors import TPAError

CLASSES, DIM = 5, 12


def images(count: int, seed: int = 0) -> list[tuple[QueryScores, torch.Tensor]]:
    """Scores and features of a few small images."""
    generator = torch.Generator().manual_seed(seed)
    return [
        (
            QueryScores(3 * torch.randn(CLASSES, 3, 4, generator=generator), (14, 17)),
            torch.randn(DIM, 4, 5, generator=generator),
        )
        for _ in range(count)
    ]


def filled(parts, rule: AnchorRule | None = None) -> PrototypeBank:
    bank = PrototypeBank(CLASSES, DIM, rule)
    for scores, phi in parts:
        bank.update(scores, phi)
    return bank


def relative_error(sums: torch.Tensor, expected: torch.Tensor) -> float:
    return ((sums - expected).norm() / expected.norm().clamp(min=1e-30)).item()


@pytest.mark.parametrize('shape', SHAPES.values(), ids=SHAPES)
def test_sums_are_those_of_upsampled_features(shape):
    scores, phi = random_scores(CLASSES, shape.scores), torch.randn(DIM, *shape.grid)
    p = direct.class_scores(direct.upsample(scores, shape.image))
    sums, counts = direct.bank_update(direct.anchor_labels(p, AnchorRule()), phi.double(), CLASSES)
    bank = PrototypeBank(CLASSES, DIM)
    contributed = bank.update(QueryScores(scores, shape.image), phi)
    assert torch.equal(bank.counts, counts)
    assert torch.equal(contributed, counts)
    assert relative_error(bank.sums, sums) < 1e-5


def test_sums_and_prototypes_are_float64():
    bank = filled(images(1))
    assert bank.sums.dtype == bank.prototypes().vectors.dtype == torch.float64
    assert bank.counts.dtype == torch.int64


def test_prototypes_are_unit_vectors_and_zero_where_there_is_no_anchor():
    bank = random_bank(CLASSES, DIM, uncovered=(1, 3))
    prototypes = bank.prototypes()
    assert prototypes.covered.tolist() == [True, False, True, False, True]
    assert_close(prototypes.vectors.norm(dim=1), prototypes.covered.double())
    assert_close(prototypes.vectors, direct.prototypes(bank.sums, bank.counts))


@few
@given(count=st.integers(0, 5), parts=st.integers(1, 3), order=st.randoms(use_true_random=False))
def test_a_bank_does_not_depend_on_the_order_of_images_or_on_how_they_are_shared(count, parts, order):
    pool = images(count)
    expected = filled(pool)
    order.shuffle(pool)
    shares = [filled(pool[part::parts]) for part in range(parts)]
    order.shuffle(shares)
    merged = shares[0]
    for share in shares[1:]:
        merged.merge(share)
    assert torch.equal(merged.counts, expected.counts)
    assert merged.images == expected.images == count
    assert_close(merged.sums, expected.sums, atol=1e-10, rtol=1e-12)


def test_merging_is_associative():
    def merged(*banks):
        total = PrototypeBank(CLASSES, DIM)
        for bank in banks:
            total.merge(bank)
        return total

    a, b, c = (filled(images(2, seed)) for seed in range(3))
    left, right = merged(merged(a, b), c), merged(a, merged(b, c))
    assert torch.equal(left.counts, right.counts)
    assert_close(left.sums, right.sums, atol=1e-10, rtol=1e-12)


def test_an_image_folded_in_later_counts_like_the_others():
    pool = images(3)
    bank = filled(pool[:2])
    bank.prototypes()
    bank.update(*pool[2])
    assert torch.equal(bank.sums, filled(pool).sums)


def test_k_min_over_the_pool_adds_up_what_single_images_do_not_reach():
    scores = torch.zeros(2, 1, 7)
    scores[0, 0, :3] = scores[1, 0, 3:] = 20  # three anchors of class 0, four of class 1
    part, phi = QueryScores(scores, (1, 7)), torch.ones(DIM, 1, 1)

    def covered(scope: str, repeats: int) -> list[bool]:
        bank = PrototypeBank(2, DIM, AnchorRule(k_min=5, k_min_scope=scope))
        for _ in range(repeats):
            bank.update(part, phi)
        return bank.covered.tolist()

    assert covered('image', 2) == [False, False]
    assert covered('pool', 1) == [False, False]
    assert covered('pool', 2) == [True, True]


def test_a_class_without_anchors_is_never_covered_even_without_k_min():
    for scope in ('image', 'pool'):
        assert not PrototypeBank(CLASSES, DIM, AnchorRule(k_min=0, k_min_scope=scope)).covered.any()


def test_a_bank_refuses_features_or_classes_of_another_number():
    (scores, phi), *_ = images(1)
    with pytest.raises(ValueError, match='5 classes x 9 features was given 5 classes x 12'):
        PrototypeBank(CLASSES, 9).update(scores, phi)
    with pytest.raises(ValueError, match='cannot be merged'):
        PrototypeBank(CLASSES, 9).merge(PrototypeBank(CLASSES, DIM))


@pytest.mark.parametrize('undefined', [float('nan'), float('inf')])
def test_features_that_are_not_finite_are_refused_before_they_spoil_the_sums(undefined):
    (scores, phi), *_ = images(1)
    phi[0, 0, 0] = undefined
    bank = filled(images(1))
    before = bank.sums.clone()
    with pytest.raises(TPAError, match='features of photo.jpg contain NaN or infinity'):
        bank.add(Evidence(scores, {ENCODER: phi}, 'photo.jpg'))
    assert torch.equal(bank.sums, before)
    assert bank.images == 1


def test_a_saved_bank_comes_back_as_it_was(tmp_path):
    bank = filled(images(2), AnchorRule(k=1.5, k_min=3, k_min_scope='pool'))
    bank.fingerprint, bank.pool = {'host': {'type': 'SCLIP'}}, ['a.jpg', 'b.jpg']
    bank.save(tmp_path / 'bank.safetensors')
    loaded = PrototypeBank.load(tmp_path / 'bank.safetensors')
    assert torch.equal(loaded.sums, bank.sums)
    assert torch.equal(loaded.counts, bank.counts)
    for name in ('rule', 'images', 'fingerprint', 'pool'):
        assert getattr(loaded, name) == getattr(bank, name)


SUMS, COUNTS = torch.ones(CLASSES, DIM, dtype=torch.float64), torch.ones(CLASSES, dtype=torch.int64)
ABOUT = {'images': 2, 'rule': AnchorRule().as_dict(), 'fingerprint': {}, 'pool': ['a.jpg']}
MEASURED = {'kappa_0': 0.3, 'kappa_inf': 0.9, 'rho': 0.8, 'unit': 4.0, 'beta2': 2.0, 'points': 9, 'made_with': {}}


@pytest.mark.parametrize(
    ('sums', 'counts', 'about'),
    [
        (SUMS.float(), COUNTS, ABOUT),
        (SUMS, COUNTS.double(), ABOUT),
        (SUMS, -COUNTS, ABOUT),
        (SUMS * float('nan'), COUNTS, ABOUT),
        (SUMS, COUNTS[1:], ABOUT),
        (SUMS[0], COUNTS[:1].expand(DIM).clone(), ABOUT),
        (SUMS[None], COUNTS[:1], ABOUT),
        (SUMS.sum(), COUNTS.sum(), ABOUT),
        (SUMS, COUNTS, []),
        (SUMS, COUNTS, {}),
        (SUMS, COUNTS, {**ABOUT, 'images': '2'}),
        (SUMS, COUNTS, {**ABOUT, 'images': 2.5}),
        (SUMS, COUNTS, {**ABOUT, 'images': True}),
        (SUMS, COUNTS, {**ABOUT, 'images': -1}),
        (SUMS, COUNTS, {**ABOUT, 'images': float('nan')}),
        (SUMS, COUNTS, {**ABOUT, 'fingerprint': []}),
        (SUMS, COUNTS, {**ABOUT, 'pool': 'a.jpg'}),
        (SUMS, COUNTS, {**ABOUT, 'pool': [1, 2]}),
        (SUMS, COUNTS, {**ABOUT, 'rule': []}),
        (SUMS, COUNTS, {**ABOUT, 'rule': {'unknown': 1}}),
        (SUMS, COUNTS, {**ABOUT, 'rule': {'k': 'two'}}),
        (SUMS, COUNTS, {**ABOUT, 'rule': {'k': 10**400}}),
        (SUMS, COUNTS, {**ABOUT, 'fingerprint': {'diagnosis': []}}),
        (SUMS, COUNTS, {**ABOUT, 'fingerprint': {'diagnosis': {'beta2': 'much'}}}),
        (SUMS, COUNTS, {**ABOUT, 'fingerprint': {'diagnosis': {**MEASURED, 'beta2': 'much'}}}),
        (SUMS, COUNTS, {**ABOUT, 'fingerprint': {'diagnosis': {**MEASURED, 'rho': 10**400}}}),
        (SUMS, COUNTS, {**ABOUT, 'fingerprint': {'diagnosis': {**MEASURED, 'made_with': 3}}}),
        (SUMS, COUNTS, {**ABOUT, 'fingerprint': {'diagnosis': {**MEASURED, 'made_with': {'eta': 'most'}}}}),
        (SUMS, COUNTS, '[' * 100_000),
    ],
)
def test_a_bank_of_wrong_types_is_one_message(tmp_path, sums, counts, about):
    path = tmp_path / 'bank.safetensors'
    text = about if isinstance(about, str) else json.dumps(about)
    parts = {'sums': sums, 'counts': counts, 'half_sums': sums.clone(), 'half_counts': counts.clone()}
    save_file({name: part.contiguous() for name, part in parts.items()}, path, {'tpa_mmseg.bank/2': text})
    with pytest.raises(TPAError, match=r'bank\.safetensors is .* delete it and build it again\.$'):
        PrototypeBank.load(path)


def test_a_header_of_any_length_is_one_message(tmp_path):
    path = tmp_path / 'bank.safetensors'
    for length in (0, 9, 2**40, 2**64 - 1):
        path.write_bytes(length.to_bytes(8, 'little') + b'{"a": 1}')
        with pytest.raises(TPAError, match='is not a readable prototype bank'):
            PrototypeBank.load(path)
