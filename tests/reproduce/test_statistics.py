"""Splits by label overlap, curves of repetition, and the choice of pictures."""

from __future__ import annotations

import numpy as np
import pytest

from tpa_mmseg.reproduce.overlap import describe, make_splits, similarity
from tpa_mmseg.reproduce.pictures import choose
from tpa_mmseg.reproduce.repetition import curve


@pytest.fixture
def seen() -> np.ndarray:
    """(images, C): frequent and rare classes."""
    rng = np.random.RandomState(0)
    return rng.rand(120, 10) < np.linspace(0.05, 0.6, 10)


def test_pools_overlap_much_by_chance_and_little(seen: np.ndarray) -> None:
    evaluation, pools = make_splits(seen, size=15, seed=0)
    overlaps = {key: describe(key, seen, pool, evaluation).overlap for key, pool in pools.items()}
    assert overlaps['high'] > overlaps['random'] + 0.05
    assert overlaps['random'] > overlaps['low'] + 0.05


def test_no_pool_holds_an_evaluation_image(seen: np.ndarray) -> None:
    evaluation, pools = make_splits(seen, size=15, seed=0)
    assert len(evaluation) == 60
    for pool in pools.values():
        assert len(set(pool)) == 15
        assert not set(pool) & set(evaluation)


def test_similarity_is_one_for_equal_and_zero_for_disjoint_shares() -> None:
    target = np.array([0.5, 0.5, 0.0])
    assert similarity(target, target) == 1
    assert similarity(np.array([0.0, 0.0, 1.0]), target) == 0
    assert similarity(np.zeros(3), np.zeros(3)) == 0


def test_repetition_counts_the_images_that_have_a_class() -> None:
    seen = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 1], [1, 0, 1], [0, 0, 1]], dtype=bool)
    found = curve('labels', seen)
    assert found.sizes == (1, 2, 5, 6)
    assert found.at_least == {'2': (0, 0.3333, 0.6667, 0.6667), '5': (0, 0, 0.3333, 0.3333), '10': (0, 0, 0, 0)}


def test_best_typical_and_worst_images_are_chosen_once_each() -> None:
    gains = [0.0, 5.0, -3.0, 1.0, 1.1, 0.9, 8.0, -1.0, 6.0, 0.5, 2.0]
    chosen = dict(choose(gains))
    assert list(chosen) == ['best-1', 'best-2', 'best-3', 'typical-1', 'typical-2', 'typical-3', 'worst-1', 'worst-2']
    assert [gains[chosen[name]] for name in ('best-1', 'best-2', 'best-3', 'worst-1')] == [8.0, 6.0, 5.0, -3.0]
    assert {gains[chosen[f'typical-{number}']] for number in (1, 2, 3)} == {0.9, 1.0, 1.1}
    assert len(set(chosen.values())) == 8


def test_few_images_are_drawn_once_too() -> None:
    assert len(choose([1.0, 2.0])) == 2
