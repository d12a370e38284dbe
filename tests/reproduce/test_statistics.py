"""Splits by label overlap, curves of repetition, the choice of pictures, and estimates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.reproduce.test_results import RESULT
from tpa_mmseg.reproduce import plan, suite_of
from tpa_mmseg.reproduce.estimate import Estimator, duration
from tpa_mmseg.reproduce.layout import RunFolder
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


def test_estimate_is_images_times_measured_seconds(tmp_path: Path) -> None:
    measured, alike, other = (
        next(run for run in plan('main') if run.name == name)
        for name in ('naclip_vit-b16_voc21', 'naclip_vit-b16_cityscapes', 'sclip_vit-b16_cityscapes')
    )
    empty = Estimator('paper', tmp_path)
    assert empty.seconds(measured) == suite_of('paper').seconds_per_image * 1449
    assert 'a guess' in empty.describe([measured], 1)
    folder = RunFolder.of(measured, tmp_path)
    folder.path.mkdir(parents=True)
    replace(RESULT, images=100, seconds=50.0, startup_seconds=10.0).save(folder.results)
    estimator = Estimator('paper', tmp_path)
    assert estimator.seconds(measured) == 10 + 0.5 * 1449
    assert estimator.seconds(alike) == estimator.seconds(other) == 10 + 0.5 * 500
    assert (
        estimator.describe([alike, other], 2)
        == '2 runs, 1,000 images, 2 at a time: about 4 min (estimated from finished runs).'
    )


@pytest.mark.parametrize('seconds, text', [(0.2, '1 s'), (89, '89 s'), (600, '10 min'), (9000, '2.5 h')])
def test_durations_are_as_exact_as_an_estimate_is(seconds: float, text: str) -> None:
    assert duration(seconds) == text
