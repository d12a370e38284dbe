"""What surrounds decoding must not change it: float types, autocast, gradients, memory layout, defaults of torch."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch
from torch.testing import assert_close

from tests.core.cases import both_labels, random_bank, random_scores
from tpa_mmseg.core import AnchorRule, FusedScores, Fusion, Lookup, PrototypeBank, QueryScores, axis_taps

CLASSES, DIM, SIZE = 5, 32, (30, 41)


@pytest.fixture
def inputs():
    """Scores, features and a bank, rounded to bfloat16 and float16 so that every float type holds them exactly."""
    scores, phi = random_scores(CLASSES, (6, 7)), torch.randn(DIM, 5, 8)
    return *(part.bfloat16().half().float() for part in (scores, phi)), random_bank(CLASSES, DIM, (3,))


def decode(scores, phi, bank):
    """Everything that a test image and a pool image go through."""
    host = QueryScores(scores, SIZE, [0, 1, 1, 2, 3])
    four = bank_of_four(bank)
    lookup = Lookup(four.prototypes(), phi, SIZE)
    pool = PrototypeBank(4, DIM)
    pool.update(host, phi)
    fused = FusedScores(host, lookup, Fusion())
    return *both_labels(host, four, phi), fused.probabilities(), lookup.band(0, SIZE[0]), pool.sums


def bank_of_four(bank):
    """The bank without its last class: the five queries are of four classes."""
    four = PrototypeBank(4, bank.dim)
    four.sums, four.counts = bank.sums[:4], bank.counts[:4]
    return four


def assert_same(results, expected):
    for ours, theirs in zip(results, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision_inputs_are_decoded_in_full_precision(inputs, dtype):
    scores, phi, bank = inputs
    assert_same(decode(scores.to(dtype), phi.to(dtype), bank), decode(*inputs))


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_autocast_around_decoding_changes_nothing(inputs, dtype):
    expected = decode(*inputs)
    with torch.autocast('cpu', dtype=dtype):
        results = decode(*inputs)
    assert_same(results, expected)


def test_no_graph_is_kept_of_inputs_that_require_gradients(inputs):
    scores, phi, bank = inputs
    results = decode(scores.clone().requires_grad_(), phi.clone().requires_grad_(), bank)
    assert not any(result.requires_grad for result in results)
    assert_same(results, decode(*inputs))


def test_a_lookup_keeps_no_graph_of_its_features(inputs):
    _, phi, bank = inputs
    lookup = Lookup(bank.prototypes(), phi.requires_grad_(), SIZE)
    assert not lookup.cosines.source.values.requires_grad
    assert not lookup.norm.row.requires_grad


def test_no_graph_is_kept_of_scores_that_are_already_at_full_size():
    scores = random_scores(CLASSES, SIZE).requires_grad_()
    host = QueryScores(scores, SIZE)
    assert not host.log_band(0, 9).requires_grad
    assert not host.probabilities().requires_grad


def test_what_was_made_in_inference_mode_can_be_used_outside_it(inputs):
    scores, phi, bank = inputs
    axis_taps.cache_clear()
    with torch.inference_mode():
        pool = PrototypeBank(CLASSES, DIM)
        pool.update(QueryScores(scores, SIZE), phi)
        decode(*inputs)
    pool.update(QueryScores(scores, SIZE), phi)
    pool.merge(pool)
    assert pool.images == 4
    decode(scores.clone().requires_grad_(), phi.clone().requires_grad_(), bank)


def test_memory_layout_does_not_matter(inputs):
    scores, phi, bank = inputs
    strided = [part.permute(2, 1, 0).contiguous().permute(2, 1, 0) for part in (scores, phi)]
    assert not strided[0].is_contiguous()
    spaced = [torch.stack((part, part), -1).flatten(2)[..., ::2] for part in (scores, phi)]
    expected = decode(*inputs)
    for layout in (strided, spaced):
        labels = decode(*layout, bank)
        for ours, theirs in zip(labels, expected, strict=True):
            assert_close(ours, theirs, atol=1e-6, rtol=1e-6)


@contextmanager
def defaults(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize('dtype', [torch.float64, torch.float16])
def test_the_default_float_type_does_not_matter(inputs, dtype):
    expected = decode(*inputs)
    axis_taps.cache_clear()
    with defaults(dtype):
        results = decode(*inputs)
    assert_same(results, expected)


def test_the_default_device_does_not_matter(inputs):
    expected = decode(*inputs)
    axis_taps.cache_clear()
    with torch.device('meta'):
        results = decode(*inputs)
    assert_same(results, expected)


def test_random_anchors_are_the_same_whatever_the_default_device(inputs):
    scores, phi, _ = inputs

    def sums():
        bank = PrototypeBank(CLASSES, DIM, AnchorRule(random=True))
        bank.update(QueryScores(scores, SIZE), phi, seed=3)
        return bank.sums

    expected = sums()
    with torch.device('meta'):
        results = sums()
    assert torch.equal(results, expected)
