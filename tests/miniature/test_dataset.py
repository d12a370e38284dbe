"""MiniatureDataset: painted or exported the same pixels, with and without a background, and no labels in the pool."""

from __future__ import annotations

import shutil
from pathlib import Path

import mmengine.fileio
import numpy as np
import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS
from tpa_tools.miniature_training.export import export

from tpa_mmseg.datasets import PoolOptions, build_pool
from tpa_mmseg.errors import TPAError
from tpa_mmseg.miniature.splits import split_of
from tpa_mmseg.miniature.textures import GROUNDS, THINGS
from tpa_mmseg.miniature.world import CLASSES, IGNORED, paint

init_default_scope('mmseg')
PIPELINE = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')]


def config(**options) -> ConfigDict:
    return ConfigDict(type='MiniatureDataset', pipeline=PIPELINE, **options)


def item(index: int, **options) -> tuple[np.ndarray, np.ndarray, dict]:
    """(H, W, 3) RGB image, (H, W) labels and metadata of a scene as the dataset gives it."""
    data = DATASETS.build(config(**options))[index]
    sample = data['data_samples']
    return data['inputs'].flip(0).permute(1, 2, 0).numpy(), sample.gt_sem_seg.data[0].numpy(), sample.metainfo


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp('scenes')
    export(path, 'val', 4)
    return path


@pytest.mark.parametrize('split', ['train', 'val', 'test'])
def test_scenes_are_those_of_the_split(split: str) -> None:
    image, labels, _ = item(2, split=split, size=3)
    scene = split_of(split).scene(2)
    assert np.array_equal(image, scene.image) and np.array_equal(labels, scene.labels)


def test_exported_scenes_are_the_painted_ones(folder: Path) -> None:
    for index in range(4):
        painted, exported = item(index, split='val'), item(index, split='val', data_root=str(folder))
        assert np.array_equal(painted[0], exported[0]) and np.array_equal(painted[1], exported[1])
        assert Path(painted[2]['img_path']).name == Path(exported[2]['img_path']).name


def test_a_split_has_as_many_scenes_as_asked_for(folder: Path) -> None:
    assert len(DATASETS.build(config())) == 300
    assert len(DATASETS.build(config(size=7))) == 7
    assert len(DATASETS.build(config(split='val', data_root=str(folder)))) == 4
    assert len(DATASETS.build(config(split='val', data_root=str(folder), size=3))) == 3


def test_scenes_have_several_sizes_or_the_one_asked_for(tmp_path: Path) -> None:
    assert len({item(index)[1].shape for index in range(12)}) > 2
    image, labels, _ = item(1, resolution=[48, 72])
    scene = paint(split_of('test').seed(1), split_of('test').unusual, (48, 72))
    assert np.array_equal(image, scene.image) and np.array_equal(labels, scene.labels)
    export(tmp_path, 'test', 2, (48, 72))
    assert np.array_equal(item(1, resolution=[48, 72], data_root=str(tmp_path))[0], image)


def test_background_is_all_grounds_and_what_is_ignored_stays_ignored() -> None:
    dataset = DATASETS.build(config(background=True))
    assert dataset.metainfo['classes'] == ('background', *THINGS)
    assert len(dataset.metainfo['palette']) == 1 + len(THINGS)
    seen = set()
    for index in range(12):
        plain, merged = item(index)[1], item(index, background=True)[1]
        assert np.array_equal(merged == 0, plain < len(GROUNDS))
        assert np.array_equal(merged == IGNORED, plain == IGNORED)
        things = (merged > 0) & (merged != IGNORED)
        assert np.array_equal(merged[things] + len(GROUNDS) - 1, plain[things])
        seen |= set(np.unique(merged).tolist())
    assert IGNORED in seen and len(seen) > 6


def test_a_selection_of_classes_ignores_the_others() -> None:
    labels = item(3, metainfo=dict(classes=('net', 'water')))[1]
    plain = item(3)[1]
    assert np.array_equal(labels == 1, plain == CLASSES.index('water'))
    assert set(np.unique(labels).tolist()) <= {0, 1, IGNORED}


def test_the_pool_has_images_without_labels(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / 'images', tmp_path / 'images')
    painted = build_pool(config(split='val', size=4), PoolOptions(size=3))
    exported = build_pool(config(split='val', data_root=str(tmp_path)), PoolOptions(size=3))
    for one, other in zip(painted, exported, strict=True):
        assert torch.equal(one['inputs'], other['inputs'])
        assert 'gt_sem_seg' not in one['data_samples'] and 'gt_sem_seg' not in other['data_samples']


def test_the_pool_may_come_from_another_split() -> None:
    pool = build_pool(config(), PoolOptions(size=5, dataset=dict(split='val')))
    assert all(name.startswith('miniature://images/val/') for name in pool.names())


@pytest.mark.parametrize('workers', [0, 1])
def test_scenes_are_painted_in_worker_processes_too(workers: int) -> None:
    dataset = DATASETS.build(config(size=2))
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers)
    images = [data['inputs'].flip(0).permute(1, 2, 0).numpy() for data in loader]
    assert np.array_equal(images[1], split_of('test').scene(1).image)


@pytest.mark.parametrize(
    ('options', 'sentence'),
    [
        ({'split': 'tset'}, "train, val, test, not 'tset'"),
        ({'size': 0}, 'size must be between 1 and'),
        ({'data_root': 'nowhere'}, r'No scenes in nowhere.images.test\. Write them with tools/miniature\.py export'),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(options: dict, sentence: str) -> None:
    with pytest.raises(TPAError, match=sentence):
        DATASETS.build(config(**options))


def test_too_few_exported_scenes_are_refused(folder: Path) -> None:
    with pytest.raises(TPAError, match='has 4 scenes, not the 5'):
        DATASETS.build(config(split='val', data_root=str(folder), size=5))


@pytest.mark.parametrize('name', ['images/test/x.png', 'images/nowhere/00000.png', 'masks/test/00000.png'])
def test_files_that_are_no_scene_do_not_exist(name: str) -> None:
    with pytest.raises(FileNotFoundError, match='no such file'):
        mmengine.fileio.get(f'miniature://{name}')
