"""Splits by label overlap, curves of repetition, and the choice of pictures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tpa_mmseg.evaluation.counts import checked_truth
from tpa_mmseg.reproduce.labels import curve, describe, make_splits, similarity
from tpa_mmseg.reproduce.pictures import choose, image_gain

#: Of the classes below.
NAMES = tuple('abcdefghij')


@pytest.fixture
def seen() -> np.ndarray:
    """(images, C): frequent and rare classes."""
    rng = np.random.RandomState(0)
    return rng.rand(120, 10) < np.linspace(0.05, 0.6, 10)


@pytest.fixture
def like_ade20k() -> np.ndarray:
    """(images, C): 150 classes, about nine in an image, most of them rare."""
    shares = 1 / np.arange(1, 151)
    return np.random.RandomState(0).rand(2000, 150) < np.minimum(0.8, 9 * shares / shares.sum())


def test_pools_overlap_much_by_chance_and_little(seen: np.ndarray) -> None:
    evaluation, pools = make_splits(seen, size=15, seed=0)
    overlaps = {key: describe(key, seen, pool, evaluation, NAMES).overlap for key, pool in pools.items()}
    assert overlaps['high'] > overlaps['random'] + 0.05
    assert overlaps['random'] > overlaps['low'] + 0.05


def test_low_pool_misses_most_of_the_evaluated_classes(like_ade20k: np.ndarray) -> None:
    names = [str(index) for index in range(150)]
    evaluation, pools = make_splits(like_ade20k, size=100, seed=0)
    splits = {key: describe(key, like_ade20k, pool, evaluation, names) for key, pool in pools.items()}
    assert splits['low'].classes_shared < 0.5 < 0.85 < splits['random'].classes_shared
    assert all(split.pool_images == 100 for split in splits.values())
    low = splits['low'].shared
    evaluated = like_ade20k[evaluation].any(0)
    held_out = [index for index in range(150) if evaluated[index] and names[index] not in low]
    assert not like_ade20k[np.ix_(pools['low'], held_out)].any()
    assert len(held_out) > len(low) > 0


def test_pools_are_smaller_where_a_large_one_would_have_most_classes(seen: np.ndarray) -> None:
    evaluation, pools = make_splits(seen, size=20, seed=0)
    low = describe('low', seen, pools['low'], evaluation, NAMES)
    assert low.classes_shared <= 0.5 and 5 <= low.pool_images < 20
    assert {len(pool) for pool in pools.values()} == {low.pool_images}


def test_no_pool_holds_an_evaluation_image(seen: np.ndarray) -> None:
    evaluation, pools = make_splits(seen, size=15, seed=0)
    assert len(evaluation) == 60
    for pool in pools.values():
        assert len(set(pool)) == len(pool)
        assert not set(pool) & set(evaluation)


def test_similarity_is_one_for_equal_and_zero_for_disjoint_shares() -> None:
    target = np.array([0.5, 0.5, 0.0])
    assert similarity(target, target) == 1
    assert similarity(np.array([0.0, 0.0, 1.0]), target) == 0
    assert similarity(np.zeros(3), np.zeros(3)) == 0


def test_repetition_is_the_mean_of_all_orders() -> None:
    seen = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 1], [1, 0, 1], [0, 0, 1]], dtype=bool)
    found = curve(seen, seed=0, draws=2000)
    assert (found.sizes, found.num_classes, found.draws) == ((1, 2, 5, 6), 3, 2000)
    # Of all six images: whatever the order.
    assert [found.at_least[times][-1] for times in ('1', '2', '5', '10')] == [1, 0.666667, 0.333333, 0]
    # Of two images: class 0 twice in 10 of 15 pairs, class 1 never, class 2 in 3 of 15.
    assert 3 * found.at_least['2'][1] == pytest.approx(13 / 15, abs=0.05)
    assert 3 * found.at_least['1'][0] == pytest.approx((5 + 1 + 3) / 6, abs=0.05)
    assert curve(seen, seed=0) == curve(seen, seed=0)


def test_best_typical_and_worst_images_are_chosen_once_each() -> None:
    gains = [0.0, 5.0, -3.0, 1.0, 1.1, 0.9, 8.0, -1.0, 6.0, 0.5, 2.0]
    chosen = dict(choose(gains))
    assert {name: gains[position] for name, position in chosen.items()} == {
        'best-1': 8.0, 'typical-1': 1.0, 'worst-1': -3.0
    }  # fmt: skip


def test_gain_of_an_image_is_that_of_the_classes_it_has() -> None:
    truth, nothing = (
        checked_truth(torch.tensor([labels]), (1, 4), 3, 255, 'a.jpg') for labels in ([0, 0, 1, 255], [255] * 4)
    )
    host, tpa = torch.tensor([[0, 2, 2, 1]]), torch.tensor([[0, 0, 2, 2]])
    # Of classes 0 and 1 the host has 1/2 and 0, TPA 2/2 and 0; class 2 is not in the image.
    assert image_gain(truth, host, tpa, 3) == 25.0
    assert image_gain(nothing, host, tpa, 3) == 0.0


def test_few_images_are_drawn_once_too() -> None:
    assert len(choose([1.0, 2.0])) == 2
