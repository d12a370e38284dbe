"""The Segmenter: models run once per image, the bank grows, other settings are arithmetic."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.tiny_segmenter import painted, tiny_config, tiny_segmenter
from tests.helpers.world import FCN
from tpa_mmseg.apis import Segmenter, segment
from tpa_mmseg.core import PrototypeBank
from tpa_mmseg.datasets.pool import PoolOptions
from tpa_mmseg.errors import TPAError

IMAGES = [painted(seed) for seed in range(3)]
CLASSES = 'cat, dog, tree'


@pytest.fixture(scope='module')
def loaded() -> Segmenter:
    torch.manual_seed(0)
    return tiny_segmenter(k=1.1)


@pytest.fixture
def segmenter(loaded: Segmenter) -> Segmenter:
    """The same models with an empty bank and an empty cache."""
    loaded.reset_bank()
    loaded.clear_cache()
    return loaded


class Passes:
    """Counts the passes of the host and of the encoder."""

    def __init__(self, segmenter: Segmenter, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host = self.encoder = 0
        for name, module, method in (('host', 'host', 'score_maps'), ('encoder', 'encoder', 'dense')):
            part = getattr(segmenter._loaded, module)
            monkeypatch.setattr(part, method, self._counting(name, getattr(part, method)))

    def _counting(self, name: str, original: Callable) -> Callable:
        def counted(*args, **kwargs):
            setattr(self, name, getattr(self, name) + 1)
            return original(*args, **kwargs)

        return counted

    @property
    def both(self) -> tuple[int, int]:
        return self.host, self.encoder


@pytest.fixture
def passes(segmenter: Segmenter, monkeypatch: pytest.MonkeyPatch) -> Passes:
    return Passes(segmenter, monkeypatch)


def limit_cache(segmenter: Segmenter, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Leave room for the evidence of so many images."""
    segmenter.evidence(segmenter.segment_one(IMAGES[0]).image).release()
    monkeypatch.setattr(segmenter, 'cache_bytes', count * segmenter._evidence.cache.nbytes)
    segmenter.clear_cache()


def write(folder: Path, count: int) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        Image.fromarray(painted(number)).save(folder / f'{number:03d}.png')
    return folder


def test_images_are_their_own_pool(segmenter: Segmenter) -> None:
    results = segmenter.segment(IMAGES)
    assert segmenter.bank.images == 3
    assert any(result.changed_fraction > 0 for result in results)


def test_labels_are_those_of_the_segmentor_behind(segmenter: Segmenter) -> None:
    result = segmenter.segment(IMAGES)[1]
    model, pipeline = segmenter._loaded.model, segmenter._loaded.pipeline
    model.set_bank(segmenter.bank)
    packed = pipeline(result.image.load())
    (sample,) = model.test_step({name: [value] for name, value in packed.items()})
    assert np.array_equal(result.labels, sample.pred_sem_seg.data[0].numpy())
    assert np.array_equal(result.host_labels, sample.host_sem_seg.data[0].numpy())


def test_models_run_once_per_image(segmenter: Segmenter, passes: Passes) -> None:
    segmenter.segment(IMAGES)
    segmenter.segment(IMAGES, alpha=0.2, lambda_=9, k=1.4)
    segmenter.segment(IMAGES[0])
    segmenter.segment_one(IMAGES[1], k=1.3)
    segmenter.probabilities(IMAGES[0]), segmenter.host_probabilities(IMAGES[0]), segmenter.anchors(IMAGES[0])
    assert passes.both == (len(IMAGES), len(IMAGES))


def test_33_images_are_33_passes(segmenter: Segmenter, passes: Passes, tmp_path: Path) -> None:
    assert len(segmenter.segment(write(tmp_path / 'photos', 33))) == 33
    assert passes.both == (33, 33)


@pytest.mark.parametrize('kept', (0, 4, 6))
def test_images_that_do_not_fit_into_the_cache_are_run_again(
    kept: int, segmenter: Segmenter, passes: Passes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_cache(segmenter, monkeypatch, kept)
    passes.host = passes.encoder = 0
    segmenter.segment(write(tmp_path / 'photos', 6))
    assert len(segmenter._evidence.cache) == kept and segmenter._evidence.cache.nbytes <= segmenter.cache_bytes
    assert passes.both == (6 + 6 - kept, 6 + 6 - kept)


def test_only_the_image_in_view_holds_what_can_be_computed_again(segmenter: Segmenter) -> None:
    for collection in (False, True):
        segmenter.segment(IMAGES if collection else IMAGES[0])
        assert [bool(evidence._norms) for evidence in segmenter._evidence.cache._kept.values()] == (
            [False] * 3 if collection else [True]
        )
    segmenter.segment_one(IMAGES[0])
    segmenter.segment_one(IMAGES[1], alpha=0.1)
    assert [bool(evidence._norms) for evidence in segmenter._evidence.cache._kept.values()] == [False, True, False]


def test_cache_stays_below_its_bytes_with_maps_of_full_size(tmp_path: Path) -> None:
    config = tiny_config('NACLIP', pamr_steps=1, pamr_dilations=(1,))
    segmenter = Segmenter(CLASSES, config, cache_bytes=100_000, progress=False)
    segmenter.segment(write(tmp_path / 'photos', 6))
    assert len(segmenter._evidence.cache) > 0 and segmenter._evidence.cache.nbytes <= 100_000


def test_nothing_changes_if_nothing_is_kept(
    segmenter: Segmenter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / 'photos', 3)
    expected = segmenter.segment(tmp_path / 'photos', alpha=0.1, k=1.3)
    monkeypatch.setattr(segmenter, 'cache_bytes', 0)
    segmenter.clear_cache()
    segmenter.reset_bank()
    for ours, theirs in zip(segmenter.segment(tmp_path / 'photos', alpha=0.1, k=1.3), expected, strict=True):
        assert np.array_equal(ours.labels, theirs.labels)
    assert not len(segmenter._evidence.cache)


@pytest.mark.parametrize('settings', ({'alpha': 0.1}, {'lambda_': 40}, {'k': 1.5}, {'alpha': 0.9, 'k': 1.0}))
def test_other_settings_give_what_a_new_start_with_them_gives(settings: dict, segmenter: Segmenter) -> None:
    segmenter.segment(IMAGES)
    changed = segmenter.segment(IMAGES, **settings)
    fresh = tiny_segmenter(**{'k': 1.1, **settings})
    fresh._start(segmenter._loaded)
    for ours, theirs in zip(changed, fresh.segment(IMAGES), strict=True):
        assert np.array_equal(ours.labels, theirs.labels)
        assert np.array_equal(ours.host_labels, theirs.host_labels)
        assert ours.coverage == theirs.coverage and ours.settings == theirs.settings


def test_alpha_of_one_leaves_the_host_alone(segmenter: Segmenter) -> None:
    for result in segmenter.segment(IMAGES, alpha=1.0):
        assert np.array_equal(result.labels, result.host_labels)


def test_wrong_alpha_is_one_sentence_before_anything_runs(segmenter: Segmenter, passes: Passes) -> None:
    with pytest.raises(TPAError, match='alpha must be a number between 0 and 1'):
        segmenter.segment(IMAGES, alpha=2)
    assert passes.both == (0, 0)


def test_one_image_at_a_time_leaves_the_bank_as_it_is(segmenter: Segmenter) -> None:
    alone = segmenter.segment_one(IMAGES[0])
    assert segmenter.bank.images == 0 and np.array_equal(alone.labels, alone.host_labels)
    expected = segmenter.segment(IMAGES)[1]
    again = segmenter.segment_one(IMAGES[1])
    assert np.array_equal(again.labels, expected.labels) and again.coverage == expected.coverage
    with pytest.raises(TPAError, match='single image'):
        segmenter.segment_one(IMAGES)


def test_pool_is_at_most_100_images_of_the_seeded_draw(segmenter: Segmenter) -> None:
    assert segmenter.pool_size == 100
    images = [painted(seed, (16, 16)) for seed in range(103)]
    results = segmenter.segment(images)
    keys = [result.image.key for result in results]
    assert segmenter.bank.images == 100
    assert segmenter.bank.pool == [keys[index] for index in PoolOptions().draw(103)]


@pytest.mark.parametrize(('size', 'images'), ((2, 2), (5, 5), (99, 6), (None, 6)))
def test_size_of_the_pool_is_an_option(size: int | None, images: int) -> None:
    given = [painted(seed) for seed in range(6)]
    for options in ({}, {'pool': given}):
        result = segment(given, CLASSES, host=tiny_config(), pool_size=size, progress=False, **options)[0]
        assert result.settings.bank_images == images


def test_adapt_counts_every_image_once(segmenter: Segmenter) -> None:
    assert segmenter.adapt(IMAGES) == 3
    assert segmenter.adapt([IMAGES[0], painted(7)]) == 1
    assert segmenter.bank.images == 4
    assert segmenter.adapt([painted(seed) for seed in range(20, 26)], pool_size=2) == 2


def test_bank_is_the_sum_over_images_in_any_order(segmenter: Segmenter) -> None:
    segmenter.adapt(IMAGES)
    sums = segmenter.bank.sums
    segmenter.reset_bank()
    for image in reversed(IMAGES):
        segmenter.adapt(image)
    assert torch.allclose(segmenter.bank.sums, sums)


def test_random_anchors_have_the_seed_of_their_image(tmp_path: Path) -> None:
    config = tiny_config()
    config.model.anchors = {'random': True, 'k': 1.1}
    segmenter = Segmenter(CLASSES, config, progress=False)
    Image.fromarray(IMAGES[0]).save(tmp_path / 'a.png')
    sums = {}
    for image in (tmp_path / 'a.png', IMAGES[0]):
        segmenter.reset_bank()
        segmenter.clear_cache()
        source = segmenter.segment(image).image
        evidence = segmenter.evidence(source)
        assert evidence.name == (source.path or source.key)
        bank = segmenter._loaded.model.new_bank()
        bank.update(evidence.scores, evidence.features['encoder'], evidence.seed)
        assert torch.equal(segmenter.bank.sums, bank.sums)
        sums[evidence.seed] = bank.sums
    first, second = sums.values()
    assert not torch.equal(first, second)


def test_later_images_do_not_change_earlier_results(segmenter: Segmenter) -> None:
    result = segmenter.segment(IMAGES)[0]
    before = result.coverage, result.settings, result.labels.copy()
    segmenter.adapt(painted(11))
    assert (result.coverage, result.settings) == before[:2]
    assert np.array_equal(result.labels, before[2])
    assert segmenter.segment_one(IMAGES[0]).settings.bank_images == 4


def test_saved_bank_gives_the_same_labels(segmenter: Segmenter, tmp_path: Path) -> None:
    expected = segmenter.segment(IMAGES)[0].labels
    segmenter.save_bank(tmp_path / 'bank.safetensors')
    segmenter.reset_bank()
    segmenter.load_bank(tmp_path / 'bank.safetensors')
    assert np.array_equal(segmenter.segment(IMAGES)[0].labels, expected)
    assert segmenter.adapt(IMAGES) == 0
    with pytest.raises(TPAError, match=r'k is fixed at 1.1 .* k=3.0'):
        segmenter.bank_with(3.0)


def test_bank_is_saved_with_another_k(segmenter: Segmenter, tmp_path: Path) -> None:
    segmenter.adapt(IMAGES)
    segmenter.save_bank(tmp_path / 'bank.safetensors', k=1.3)
    saved = PrototypeBank.load(tmp_path / 'bank.safetensors')
    assert saved.rule.k == 1.3 and saved.images == 3 and segmenter.bank.rule.k == 1.1


def test_bank_for_other_classes_is_refused(segmenter: Segmenter, tmp_path: Path) -> None:
    segmenter.adapt(IMAGES)
    segmenter.save_bank(tmp_path / 'bank.safetensors')
    other = segmenter.with_classes('cat, dog, house')
    with pytest.raises(TPAError, match='made with another'):
        other.load_bank(tmp_path / 'bank.safetensors')
    assert other.bank.images == 0


def test_no_path_of_a_user_gets_into_a_bank(segmenter: Segmenter, tmp_path: Path) -> None:
    Image.fromarray(IMAGES[0]).save(tmp_path / 'private.png')
    segmenter.adapt(tmp_path)
    segmenter.save_bank(tmp_path / 'bank.safetensors')
    assert b'private' not in (tmp_path / 'bank.safetensors').read_bytes()
    assert PrototypeBank.load(tmp_path / 'bank.safetensors').images == 1


def test_images_in_memory_are_held_for_other_k_up_to_the_cache(
    segmenter: Segmenter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segmenter, 'cache_bytes', 2 * IMAGES[0].nbytes)
    segmenter.clear_cache()
    segmenter.adapt(IMAGES[:2])
    assert segmenter.bank_with(1.4).images == 2
    segmenter.adapt(IMAGES[2])
    with pytest.raises(TPAError, match='k is fixed'):
        segmenter.bank_with(1.4)


def test_stream_updates_the_bank_and_uses_it_as_it_is(segmenter: Segmenter, passes: Passes) -> None:
    images = [result.settings.bank_images for result in segmenter.stream(iter(IMAGES), update_bank=True)]
    assert images == [1, 2, 3] and passes.both == (3, 3)
    assert [result.settings.bank_images for result in segmenter.stream(IMAGES)] == [3, 3, 3]
    assert len(list(segmenter.stream(IMAGES[0]))) == 1
    assert not len(segmenter._evidence.cache)
    with pytest.raises(TPAError, match='k is fixed'):
        segmenter.bank_with(1.4)


def test_stream_has_no_end_and_reads_one_image_at_a_time(segmenter: Segmenter) -> None:
    read = []
    endless = (read.append(seed) or painted(seed % 3) for seed in itertools.count())
    assert len(list(itertools.islice(segmenter.stream(endless, update_bank=True), 4))) == 4
    assert len(read) == 4 and segmenter.bank.images == 3


def test_other_classes_share_the_encoder(segmenter: Segmenter) -> None:
    segmenter.adapt(IMAGES)
    other = segmenter.with_classes('a, b, c, d, e')
    assert other._loaded.encoder is segmenter._loaded.encoder
    assert other.segment(IMAGES[0]).classes == ('a', 'b', 'c', 'd', 'e')
    assert segmenter.classes == ('cat', 'dog', 'tree') and segmenter.bank.images == 3


def test_host_alone_loads_no_encoder_and_has_no_bank() -> None:
    alone = Segmenter(CLASSES, tiny_config(), tpa=False, progress=False)
    result = alone.segment(IMAGES[0])
    assert result.labels is result.host_labels and result.coverage == () and result.settings is None
    assert alone._loaded.encoder is None
    assert np.array_equal(alone.probabilities(IMAGES[0]), alone.host_probabilities(IMAGES[0]))
    for needs_a_bank in (
        lambda: alone.adapt(IMAGES),
        lambda: alone.load_bank('bank.safetensors'),
        lambda: next(alone.stream(IMAGES, update_bank=True)),
        lambda: alone.anchors(IMAGES[0]),
    ):
        with pytest.raises(TPAError, match='tpa=False'):
            needs_a_bank()


def test_anchors_are_what_the_bank_counts(segmenter: Segmenter) -> None:
    results = segmenter.segment(IMAGES)
    counts = sum(np.bincount(segmenter.anchors(image).ravel() + 1, minlength=4)[1:] for image in IMAGES)
    assert [each.anchors for each in results[0].coverage] == counts.tolist()
    assert (segmenter.anchors(IMAGES[0], k=2.9) >= 0).sum() < (segmenter.anchors(IMAGES[0]) >= 0).sum()
    assert segmenter.anchor_figure(IMAGES[0]).width > 56


def test_labels_follow_from_probabilities(segmenter: Segmenter) -> None:
    segmenter.segment(IMAGES)
    result = segmenter.segment_one(IMAGES[0], alpha=0.3)
    assert np.array_equal(segmenter.probabilities(IMAGES[0], alpha=0.3).argmax(0), result.labels)
    assert np.array_equal(segmenter.host_probabilities(IMAGES[0]).argmax(0), result.host_labels)


def test_results_are_saved_and_areas_add_up(segmenter: Segmenter, tmp_path: Path) -> None:
    results = segmenter.segment(IMAGES)
    results.save(tmp_path)
    report = json.loads((tmp_path / 'areas.json').read_text(encoding='utf-8'))
    assert report['classes'] == ['cat', 'dog', 'tree'] and report['model'] == segmenter.description
    for result, entry in zip(results, report['images'], strict=True):
        labels = Image.open(tmp_path / entry['labels'])
        assert labels.mode == 'P' and np.array_equal(np.asarray(labels), result.labels)
        assert labels.getpalette()[:9] == [value for color in result.palette for value in color]
        assert sum(area['pixels'] for area in entry['areas']) == result.labels.size
        assert entry['areas'][1]['pixels'] == int((result.labels == 1).sum())
        assert (entry['alpha'], entry['lambda'], entry['k'], entry['bank_images']) == (0.5, 5.0, 1.1, 3)
    assert {path.name for path in tmp_path.iterdir()} == {'areas.json', 'overlays', 'labels', 'comparisons'}


def test_images_with_one_name_do_not_overwrite_each_other(segmenter: Segmenter, tmp_path: Path) -> None:
    for seed, place in enumerate(('one/a.png', 'two/a.png', 'two/a.bmp')):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        Image.fromarray(painted(seed)).save(tmp_path / place)
    segmenter.segment([tmp_path / 'one', tmp_path / 'two', IMAGES[0]]).save(tmp_path / 'out')
    assert len(list((tmp_path / 'out/labels').rglob('*.png'))) == 4


def test_show_opens_the_comparison(segmenter: Segmenter, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    monkeypatch.setattr(Image.Image, 'show', lambda image, title=None: shown.append(image.size))
    results = segmenter.segment(IMAGES[:2])
    results.show()
    assert shown == [each.comparison().size for each in results]
    assert results[0]._repr_png_().startswith(b'\x89PNG')


def test_config_with_fixed_classes_needs_none() -> None:
    segmenter = Segmenter(host=FCN, progress=False)
    result = segmenter.segment(painted(0, (64, 96)))
    assert len(result.classes) == segmenter._loaded.host.num_classes and 'cloud' in result.classes
    with pytest.raises(TPAError, match='has fixed classes'):
        Segmenter(['cat', 'dog'], host=FCN)


def test_consistent_tpa_looks_at_the_pool_again_without_the_models(segmenter: Segmenter, passes: Passes) -> None:
    images = [painted(number) for number in range(6)]
    paper = segmenter.segment(images)
    consistent = segmenter.segment(images, consistent=True)
    found = segmenter.bank.diagnosis
    assert passes.both == (6, 6)
    assert found.points > 0 and found.describe() in segmenter.describe_bank()
    same = all(np.array_equal(one.labels, other.labels) for one, other in zip(paper, consistent, strict=True))
    assert same == (found.beta2 == 0)
    again = segmenter.segment(images)
    assert all(np.array_equal(one.labels, other.labels) for one, other in zip(paper, again, strict=True))


def test_consistent_tpa_needs_the_images_of_the_bank_or_its_diagnosis(tmp_path):
    images, file = [painted(number) for number in range(4)], tmp_path / 'bank.safetensors'
    first = tiny_segmenter(consistent=True)
    expected = first.segment(images)
    first.save_bank(file)
    second = first.with_classes('cat, dog, tree')
    second.load_bank(file)
    for one, other in zip(expected, second.segment(images), strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
    with pytest.raises(TPAError, match='looks at the pool again'):
        second.segment(images, alpha=0.1)


def test_everything_is_one_line_in_a_console(segmenter: Segmenter) -> None:
    results = segmenter.segment(IMAGES)
    largest = max(results[0].areas, key=lambda area: area.pixels)
    changed = f'TPA changed {100 * results[0].changed_fraction:.1f} %'
    assert repr(results[0]).startswith(f'Segmentation(image_1, 56 x 40: {largest.name} {100 * largest.share:.1f} %')
    assert repr(results[0]).endswith(f'; {changed})')
    assert repr(results).startswith(f'Segmentations(3 images; image_1: {changed}, image_2: ')
    bank = f'PrototypeBank(3 images, 3 of 3 classes covered, {int(segmenter.bank.counts.sum()):,} anchors, k = 1.1)'
    assert repr(segmenter.bank) == bank
    assert repr(segmenter) == f'Segmenter(a config, cat, dog, tree; {bank})'
    model = segmenter._loaded.model
    assert repr(model.host).startswith('SCLIP(3 classes, ') and repr(model.encoder).startswith('TimmEncoder(')
    assert repr(model).startswith(f'TPASegmentor({model.host!r}, {model.encoder!r}, ')
    named = dataclasses.replace(results[0], classes=('\x1b[2J\n', 'dog', 'tree'))
    for each in (results[0], results, segmenter.bank, segmenter, model, named):
        assert '\n' not in repr(each) and '\x1b' not in repr(each)
