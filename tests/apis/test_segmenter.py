"""The model object: networks run once, the bank grows, settings change without them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.tiny_segmenter import painted, tiny_config, tiny_segmenter
from tests.helpers.world import FCN
from tpa_mmseg.apis import Segmenter
from tpa_mmseg.core import PrototypeBank
from tpa_mmseg.errors import TPAError

IMAGES = [painted(seed) for seed in range(3)]
CLASSES = 'cat, dog, tree'


@pytest.fixture(scope='module')
def networks() -> Segmenter:
    torch.manual_seed(0)
    return tiny_segmenter(k=1.1)


@pytest.fixture
def segmenter(networks: Segmenter) -> Segmenter:
    """The same networks with an empty bank."""
    networks.forget()
    networks._kept.clear()
    return networks


def count_runs(segmenter: Segmenter, monkeypatch: pytest.MonkeyPatch) -> list:
    """A list that grows with every run of the host's network."""
    runs, host = [], segmenter._networks.host
    original = host.score_maps
    monkeypatch.setattr(host, 'score_maps', lambda *args: runs.append(1) or original(*args))
    return runs


def test_pictures_are_their_own_pool(segmenter: Segmenter) -> None:
    results = segmenter.segment(IMAGES)
    assert segmenter.bank.images == 3
    assert any(result.changed() > 0 for result in results)


def test_labels_are_those_of_the_segmentor_behind(segmenter: Segmenter) -> None:
    result = segmenter.segment(IMAGES)[1]
    model, prepare = segmenter._networks.model, segmenter._networks.prepare
    model.set_bank(segmenter.bank)
    packed = prepare(result.picture.load())
    (sample,) = model.test_step({name: [value] for name, value in packed.items()})
    assert np.array_equal(result.labels, sample.pred_sem_seg.data[0].numpy())
    assert np.array_equal(result.host_labels, sample.host_sem_seg.data[0].numpy())


def test_networks_run_once_per_picture(segmenter: Segmenter, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = count_runs(segmenter, monkeypatch)
    results = segmenter.segment(IMAGES)
    results.fuse(alpha=0.2, lambda_=9, k=1.4)
    segmenter.segment(IMAGES[0])
    results[0].scores(), results[0].anchors()
    assert len(runs) == len(IMAGES)


def test_nothing_changes_where_nothing_is_kept(
    segmenter: Segmenter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, image in enumerate(IMAGES):
        Image.fromarray(image).save(tmp_path / f'{number}.png')
    expected = segmenter.segment(tmp_path).fuse(alpha=0.1, k=1.3)
    monkeypatch.setattr(segmenter, 'keep', 0)
    segmenter._kept.clear()
    segmenter.forget()
    for ours, theirs in zip(segmenter.segment(tmp_path).fuse(alpha=0.1, k=1.3), expected, strict=True):
        assert np.array_equal(ours.labels, theirs.labels)
    assert not segmenter._kept


@pytest.mark.parametrize('settings', ({'alpha': 0.1}, {'lambda_': 40}, {'k': 1.5}, {'alpha': 0.9, 'k': 1.0}))
def test_other_settings_give_what_a_new_start_with_them_gives(settings: dict, segmenter: Segmenter) -> None:
    changed = segmenter.segment(IMAGES).fuse(**settings)
    anew = tiny_segmenter(**{'k': 1.1, **settings})
    anew._networks = segmenter._networks
    anew.forget()
    for ours, theirs in zip(changed, anew.segment(IMAGES), strict=True):
        assert np.array_equal(ours.labels, theirs.labels)
        assert np.array_equal(ours.host_labels, theirs.host_labels)
        assert ours.coverage() == theirs.coverage()


def test_alpha_of_one_leaves_the_host_alone(segmenter: Segmenter) -> None:
    for result in segmenter.segment(IMAGES).fuse(alpha=1.0):
        assert np.array_equal(result.labels, result.host_labels)


def test_wrong_alpha_is_a_sentence(segmenter: Segmenter) -> None:
    with pytest.raises(TPAError, match='alpha must be between 0 and 1'):
        segmenter.segment(IMAGES).fuse(alpha=2)


def test_adapt_counts_every_picture_once(segmenter: Segmenter) -> None:
    assert segmenter.adapt(IMAGES) == 3
    assert segmenter.adapt([IMAGES[0], painted(7)]) == 1
    assert segmenter.bank.images == 4


def test_bank_is_the_sum_over_pictures_in_any_order(segmenter: Segmenter) -> None:
    segmenter.adapt(IMAGES)
    sums = segmenter.bank.sums
    segmenter.forget()
    for image in reversed(IMAGES):
        segmenter.adapt(image)
    assert torch.allclose(segmenter.bank.sums, sums)


def test_later_pictures_do_not_change_earlier_results(segmenter: Segmenter) -> None:
    result = segmenter.segment(IMAGES)[0]
    before = result.coverage(), result.scores()
    segmenter.adapt(painted(11))
    assert result.coverage() == before[0]
    assert np.array_equal(result.scores(), before[1])


def test_saved_bank_gives_the_same_labels(segmenter: Segmenter, tmp_path: Path) -> None:
    expected = segmenter.segment(IMAGES)[0].labels
    segmenter.save_bank(tmp_path / 'bank.safetensors')
    segmenter.forget()
    segmenter.load_bank(tmp_path / 'bank.safetensors')
    assert np.array_equal(segmenter.segment(IMAGES)[0].labels, expected)
    assert segmenter.adapt(IMAGES) == 0
    with pytest.raises(TPAError, match='k is 1.1 for good'):
        segmenter.bank_for(3.0)


def test_bank_for_other_classes_is_refused(segmenter: Segmenter, tmp_path: Path) -> None:
    segmenter.adapt(IMAGES)
    segmenter.save_bank(tmp_path / 'bank.safetensors')
    with pytest.raises(TPAError, match='made with another'):
        segmenter.with_classes('cat, dog, house').load_bank(tmp_path / 'bank.safetensors')


def test_no_path_of_a_user_gets_into_a_bank(segmenter: Segmenter, tmp_path: Path) -> None:
    Image.fromarray(IMAGES[0]).save(tmp_path / 'private.png')
    segmenter.adapt(tmp_path)
    segmenter.save_bank(tmp_path / 'bank.safetensors')
    assert b'private' not in (tmp_path / 'bank.safetensors').read_bytes()
    assert PrototypeBank.load(tmp_path / 'bank.safetensors').images == 1


def test_stream_grows_the_bank_and_uses_what_it_knows_so_far(segmenter: Segmenter) -> None:
    images = [result.bank.images for result in segmenter.stream(iter(IMAGES), grow=True)]
    assert images == [1, 2, 3]
    assert [result.bank.images for result in segmenter.stream(IMAGES)] == [3, 3, 3]
    assert len(list(segmenter.stream(IMAGES[0]))) == 1


def test_stream_has_no_end_and_reads_one_picture_at_a_time(segmenter: Segmenter) -> None:
    read = []
    endless = (read.append(seed) or painted(seed % 3) for seed in itertools.count())
    assert len(list(itertools.islice(segmenter.stream(endless, grow=True), 4))) == 4
    assert len(read) == 4 and segmenter.bank.images == 3


def test_other_classes_share_the_encoder(segmenter: Segmenter) -> None:
    segmenter.adapt(IMAGES)
    other = segmenter.with_classes('a, b, c, d, e')
    assert other._networks.encoder is segmenter._networks.encoder
    assert other.segment(IMAGES[0]).class_names == ('a', 'b', 'c', 'd', 'e')
    assert segmenter.class_names == ('cat', 'dog', 'tree') and segmenter.bank.images == 3


def test_host_alone_loads_no_encoder_and_has_no_bank() -> None:
    alone = Segmenter(CLASSES, tiny_config(), tpa=False, progress=False)
    result = alone.segment(IMAGES[0])
    assert result.labels is result.host_labels and result.coverage() == []
    for needs_a_bank in (
        lambda: alone.adapt(IMAGES),
        lambda: alone.load_bank('bank.safetensors'),
        lambda: next(alone.stream(IMAGES, grow=True)),
        result.anchors,
    ):
        with pytest.raises(TPAError, match='tpa=False'):
            needs_a_bank()


def test_anchors_are_what_the_bank_counts(segmenter: Segmenter) -> None:
    results = segmenter.segment(IMAGES)
    counts = sum(np.bincount(result.anchors().ravel() + 1, minlength=4)[1:] for result in results)
    assert [each.anchors for each in results[0].coverage()] == counts.tolist()


def test_results_are_saved_and_areas_add_up(segmenter: Segmenter, tmp_path: Path) -> None:
    results = segmenter.segment(IMAGES)
    results.save(tmp_path)
    report = json.loads((tmp_path / 'areas.json').read_text(encoding='utf-8'))
    assert report['classes'] == ['cat', 'dog', 'tree']
    for result, entry in zip(results, report['images'], strict=True):
        labels = Image.open(tmp_path / entry['labels'])
        assert labels.mode == 'P' and np.array_equal(np.asarray(labels), result.labels)
        assert labels.getpalette()[:9] == [value for color in result.palette for value in color]
        assert sum(area['pixels'] for area in entry['areas']) == result.labels.size
        assert entry['areas'][1]['pixels'] == int((result.labels == 1).sum())
    assert {path.name for path in tmp_path.iterdir()} == {'areas.json', 'overlays', 'labels', 'comparisons'}


def test_pictures_with_one_name_do_not_overwrite_each_other(segmenter: Segmenter, tmp_path: Path) -> None:
    for seed, place in enumerate(('one/a.png', 'two/a.png', 'two/a.bmp')):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        Image.fromarray(painted(seed)).save(tmp_path / place)
    segmenter.segment([tmp_path / 'one', tmp_path / 'two', IMAGES[0]]).save(tmp_path / 'out')
    assert len(list((tmp_path / 'out/labels').rglob('*.png'))) == 4


def test_show_opens_the_comparison(segmenter: Segmenter, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    monkeypatch.setattr(Image.Image, 'show', lambda image, title=None: shown.append(image.size))
    result = segmenter.segment(IMAGES[:2])
    result.show()
    assert shown == [each.comparison().size for each in result]


def test_config_with_classes_of_its_own_needs_none() -> None:
    segmenter = Segmenter(host=FCN, progress=False)
    result = segmenter.segment(painted(0, (64, 96)))
    assert len(result.class_names) == segmenter._networks.host.num_classes and 'cloud' in result.class_names
    with pytest.raises(TPAError, match='classes of its own'):
        Segmenter(['cat', 'dog'], host=FCN)
