"""The pool: which images, and never a label."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.structures import PixelData

from tests.helpers.world import SIZE, make_world
from tpa_mmseg.datasets import PoolOptions, build_pool
from tpa_mmseg.errors import TPAError

init_default_scope('mmseg')


@pytest.fixture(scope='module')
def dataset(tmp_path_factory):
    return Config.fromfile(make_world(tmp_path_factory.mktemp('world'))).test_dataloader.dataset


def test_the_pool_is_built_and_loaded_without_label_files(tmp_path):
    config = Config.fromfile(make_world(tmp_path)).test_dataloader.dataset
    shutil.rmtree(tmp_path / 'scenes' / 'labels')
    pool = build_pool(config, PoolOptions())
    for item in range(len(pool)):
        sample = pool[item]['data_samples']
        assert 'gt_sem_seg' not in sample
        assert 'seg_map_path' not in sample.metainfo


def test_truth_that_a_data_set_delivers_unasked_is_taken_away(dataset):
    pool = build_pool(dataset, PoolOptions())
    load = pool.dataset.pipeline

    def with_truth(info):
        data = load(info)
        data['data_samples'].gt_sem_seg = PixelData(data=torch.zeros(1, *SIZE))
        return data

    pool.dataset.pipeline = with_truth
    assert 'gt_sem_seg' not in pool[0]['data_samples']


def test_a_seed_means_one_pool_and_smaller_pools_are_part_of_larger_ones():
    draws = {size: set(PoolOptions(size=size, seed=3).draw(50)) for size in (5, 20, 50)}
    assert draws[5] < draws[20] < draws[50] == set(range(50))
    assert draws[20] == set(PoolOptions(size=20, seed=3).draw(50)) != set(PoolOptions(size=20, seed=4).draw(50))


def test_the_draw_is_the_same_for_good():
    assert PoolOptions(size=5, seed=0).draw(1449) == [270, 278, 482, 870, 1412]


def test_by_default_all_images_are_taken_where_there_are_fewer_than_100():
    assert PoolOptions().draw(7) == list(range(7))
    assert len(PoolOptions().draw(1000)) == 100


def test_a_fraction_of_the_images():
    assert len(PoolOptions(fraction=0.25).draw(40)) == 10
    assert len(PoolOptions(fraction=0.001).draw(40)) == 1


def test_a_pool_larger_than_the_data_set_is_refused():
    with pytest.raises(TPAError, match='pool.size is 8 but the dataset has only 7 images'):
        PoolOptions(size=8).draw(7)


@pytest.mark.parametrize('wrong', [{'size': 0}, {'fraction': 0.0}, {'fraction': 1.5}, {'size': 3, 'fraction': 0.5}])
def test_wrong_options_are_refused(wrong):
    with pytest.raises(TPAError, match='pool'):
        PoolOptions.of(wrong)


@pytest.mark.parametrize('name', ['0004', '0004.png', 'images/0004.png'])
def test_an_explicit_list_names_images_by_stem_name_or_path(dataset, name):
    assert build_pool(dataset, PoolOptions(files=[name, '0001'])).names() == ['images/0001.png', 'images/0004.png']


def test_an_explicit_list_may_be_a_file(dataset, tmp_path):
    (tmp_path / 'list.txt').write_text('0002\n\n0000\n', encoding='utf-8')
    assert len(build_pool(dataset, PoolOptions(files=str(tmp_path / 'list.txt')))) == 2


def test_an_unknown_name_in_the_list_is_refused(dataset):
    with pytest.raises(TPAError, match="'nobody'"):
        build_pool(dataset, PoolOptions(files=['nobody']))


def test_another_folder_with_images_of_several_kinds(dataset, tmp_path):
    (tmp_path / 'other' / 'deep').mkdir(parents=True)
    image = Path(dataset.data_root, 'images', '0000.png')
    shutil.copy(image, tmp_path / 'other' / 'a.PNG')
    shutil.copy(image, tmp_path / 'other' / 'deep' / 'b.png')
    (tmp_path / 'other' / 'notes.txt').write_text('no image', encoding='utf-8')
    pool = build_pool(dataset, PoolOptions(folder=str(tmp_path / 'other')))
    assert pool.names() == ['a.PNG', 'deep/b.png']
    assert pool[1]['inputs'].shape[0] == 3


def test_an_empty_folder_is_refused(dataset, tmp_path):
    with pytest.raises(TPAError, match='contains no images'):
        build_pool(dataset, PoolOptions(folder=str(tmp_path)))


def test_another_split_by_changes_to_the_data_set(dataset, tmp_path):
    (tmp_path / 'train.txt').write_text('0005\n0006\n', encoding='utf-8')
    pool = build_pool(dataset, PoolOptions(dataset={'ann_file': str(tmp_path / 'train.txt')}))
    assert pool.names() == ['images/0005.png', 'images/0006.png']


def test_data_sets_that_wrap_others_lose_their_labels_too(dataset):
    wrapped = {'type': 'ConcatDataset', 'datasets': [dataset, dataset]}
    pool = build_pool(wrapped, PoolOptions())
    assert len(pool) == 14
    assert 'gt_sem_seg' not in pool[13]['data_samples']


def test_the_fingerprint_follows_images_and_pipeline(dataset, tmp_path):
    config = Config.fromfile(make_world(tmp_path)).test_dataloader.dataset
    before = build_pool(config, PoolOptions()).fingerprint()
    assert before == build_pool(config, PoolOptions()).fingerprint()
    config.pipeline.insert(1, {'type': 'Resize', 'scale': (2048, 30), 'keep_ratio': True})
    assert build_pool(config, PoolOptions()).fingerprint()['pipeline'] != before['pipeline']
    (tmp_path / 'scenes/images/0000.png').write_bytes((tmp_path / 'scenes/images/0001.png').read_bytes())
    assert build_pool(config, PoolOptions()).fingerprint()['content'] != before['content']
