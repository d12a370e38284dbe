"""Evidence holds what the networks said, counts its bytes and frees what needs no network."""

from __future__ import annotations

import torch

from tests.core.cases import random_scores
from tpa_mmseg.core import ENCODER, Evidence, EvidenceCache, Grid, QueryScores

SIZE, GRID, CLASSES, DIM = (20, 24), (4, 6), 5, 8
SMALL = 4 * (CLASSES * 4 * 6 + DIM * 4 * 6)


class Refinable(Grid):
    """A map whose full-size version is made at first use, as mask refinement does."""

    def __init__(self, values: torch.Tensor) -> None:
        super().__init__(values)
        self.made = 0
        self._full: torch.Tensor | None = None

    def rows(self, top: int, bottom: int) -> torch.Tensor:
        if self._full is None:
            self.made += 1
            self._full = self.values.repeat(1, 10, 10)
        return super().rows(top, bottom)

    @property
    def nbytes(self) -> int:
        return super().nbytes + (0 if self._full is None else self._full.nbytes)

    def release(self) -> None:
        self._full = None


def evidence(name: str = '', source: Grid | None = None) -> Evidence:
    scores = random_scores(CLASSES, GRID) if source is None else source
    return Evidence(QueryScores(scores, SIZE), {ENCODER: torch.randn(DIM, *GRID)}, name)


def test_the_seed_is_that_of_the_file_in_whatever_folder():
    assert evidence('a/photo.jpg').seed == evidence('b/c/photo.jpg').seed != evidence('a/other.jpg').seed


def test_the_norm_of_features_is_computed_once_and_freed_on_release():
    image = evidence()
    assert image.nbytes == SMALL
    norm = image.norm()
    assert image.norm() is norm
    assert image.nbytes == SMALL + norm.nbytes > SMALL
    image.release()
    assert image.nbytes == SMALL


def test_what_can_be_computed_again_is_freed_and_computed_again():
    source = Refinable(random_scores(CLASSES, GRID))
    image = evidence(source=source)
    labels = image.scores.labels()
    full = image.nbytes
    image.release()
    assert image.nbytes == SMALL < full
    assert torch.equal(image.scores.labels(), labels)
    assert source.made == 2


def test_a_cache_keeps_the_first_images_that_fit():
    cache = EvidenceCache(2 * SMALL)
    images = {name: evidence(name) for name in 'abc'}
    assert [cache.put(name, image) for name, image in images.items()] == [True, True, False]
    assert cache.get('a') is images['a'] and cache.get('c') is None
    assert cache.nbytes <= cache.limit
    cache.clear()
    assert len(cache) == 0 and cache.put('c', images['c'])


def test_a_full_cache_releases_before_it_refuses():
    cache = EvidenceCache(2 * SMALL)
    first = evidence('a', Refinable(random_scores(CLASSES, GRID)))
    first.scores.labels()
    first.release()
    assert cache.put('a', first)
    first.scores.labels()
    assert cache.nbytes > cache.limit
    assert cache.put('b', evidence('b'))
    assert cache.nbytes <= cache.limit


def test_looking_at_one_image_frees_what_the_others_can_compute_again():
    cache = EvidenceCache(2 * SMALL)
    sources = {name: Refinable(random_scores(CLASSES, GRID)) for name in 'ab'}
    for name, source in sources.items():
        cache.put(name, evidence(name, source))
    for name in 'abab':
        cache.get(name).scores.labels()
        assert sum(source._full is not None for source in sources.values()) <= 2
    cache.get('a')
    assert sources['b']._full is None


def test_images_cost_as_many_passes_as_a_cache_has_no_room_for():
    cache, passes = EvidenceCache(4 * SMALL), 0
    for _ in range(2):
        for name in 'abcdef':
            if cache.get(name) is None:
                passes += 1
                cache.put(name, evidence(name))
    assert passes == 6 + 2
