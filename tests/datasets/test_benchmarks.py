"""The benchmarks' datasets and their lists of class names."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS
from PIL import Image

from tpa_mmseg.clip.names import PACKAGED, ClassNames, packaged_lists
from tpa_mmseg.datasets.benchmarks import voc_colors

init_default_scope('mmseg')

# Dataset class, classes, queries of each list.
LISTS = {
    'voc21': ('PascalVOCDataset', 21, 21),
    'voc21_sclip': ('PascalVOCDataset', 21, 56),
    'voc21_proxyclip': ('PascalVOCDataset', 21, 46),
    'voc20': ('PascalVOC20Dataset', 20, 20),
    'voc20_sclip': ('PascalVOC20Dataset', 20, 30),
    'context60': ('PascalContext60Dataset', 60, 60),
    'context59': ('PascalContext59Dataset', 59, 59),
    'coco_object': ('COCOObjectDataset', 81, 81),
    'coco_object_sclip': ('COCOObjectDataset', 81, 113),
    'coco_object_proxyclip': ('COCOObjectDataset', 81, 97),
    'coco_stuff164k': ('COCOStuffDataset', 171, 171),
    'cityscapes': ('CityscapesDataset', 19, 19),
    'ade20k': ('ADE20KDataset', 150, 150),
}
# Where the lists call a class by another word than the dataset.
OTHER_WORDS = {'boat': 'ship', 'diningtable': 'table', 'background': 'sky'}

LABELS = np.array([[0, 1, 2], [5, 59, 255]], np.uint8)


def read(name: str) -> ClassNames:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # 'bed' twice, see below
        return ClassNames.read(name)


def test_every_list_is_tested_and_has_a_source() -> None:
    sources = json.loads((PACKAGED / 'sources.json').read_text(encoding='utf-8'))
    assert packaged_lists() == sorted(LISTS) == sorted(sources['lists'])
    for entry in sources['lists'].values():
        assert entry['hosts'] and set(entry['hosts']) <= set(sources['repositories'])


@pytest.mark.parametrize('name', LISTS)
def test_list_names_the_classes_of_its_data_set_in_order(name: str) -> None:
    dataset, classes, queries = LISTS[name]
    names = read(name)
    assert (len(names.names), len(names.queries)) == (classes, queries)
    assert names.query_to_class[-1] == classes - 1
    for known, synonyms in zip(DATASETS.get(dataset).METAINFO['classes'], names.names, strict=True):
        glued = [synonym.replace(' ', '') for synonym in synonyms]
        assert known.replace(' ', '') in glued or OTHER_WORDS[known] in glued


def test_list_is_found_by_its_name_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'voc20').write_text('mine\n', encoding='utf-8')
    assert len(ClassNames.read('voc20').names) == 20
    assert ClassNames.read('./voc20').names == ClassNames.read(tmp_path / 'voc20').names == (('mine',),)


def test_shared_word_of_the_original_lists_is_pointed_out() -> None:
    with pytest.warns(UserWarning, match="'bed' is a name of classes 0 and 60"):
        ClassNames.read('coco_object_sclip')


def make_files(root: Path, labels: str, suffix: str, split: str | None) -> dict:
    """Writes one image with labels. Returns the paths as a dataset's config has them."""
    images = root / 'images'
    for folder in (images, root / labels, root / 'lists'):
        folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.zeros((2, 3, 3), np.uint8)).save(images / 'a.jpg')
    Image.fromarray(LABELS).save(root / labels / f'a{suffix}')
    if split:
        (root / split).write_text('a\n', encoding='utf-8')
    return {'data_root': str(root), 'data_prefix': {'img_path': 'images', 'seg_map_path': labels}}


@pytest.mark.parametrize('ours', ['PascalVOC20Dataset', 'PascalContext59Dataset'])
def test_background_is_ignored_where_it_is_no_class(ours: str, tmp_path: Path) -> None:
    assert loaded(ours, tmp_path).tolist() == [[255, 0, 1], [4, 58, 255]]


@pytest.mark.parametrize('ours', ['PascalVOCDataset', 'PascalContext60Dataset'])
def test_background_is_class_zero_where_it_counts(ours: str, tmp_path: Path) -> None:
    assert loaded(ours, tmp_path).tolist() == LABELS.tolist()


def loaded(dataset: str, root: Path) -> np.ndarray:
    """The labels that a dataset with a split file gives for the image."""
    paths = make_files(root, 'labels', '.png', 'lists/val.txt')
    steps = [{'type': 'LoadAnnotations'}]
    data = DATASETS.build({'type': dataset, 'ann_file': 'lists/val.txt', 'pipeline': steps, **paths})
    assert len(data) == 1
    return data[0]['gt_seg_map']


def test_coco_object_and_coco_stuff_share_a_folder(tmp_path: Path) -> None:
    make_files(tmp_path, 'annotations', '_labelTrainIds.png', None)
    paths = make_files(tmp_path, 'annotations', '_instanceTrainIds.png', None)
    files = {
        name: Path(DATASETS.build({'type': name, **paths}).get_data_info(0)['seg_map_path']).name
        for name in ('COCOObjectDataset', 'COCOStuffDataset')
    }
    assert files == {'COCOObjectDataset': 'a_instanceTrainIds.png', 'COCOStuffDataset': 'a_labelTrainIds.png'}


def test_palettes_tell_classes_apart() -> None:
    assert voc_colors(21) == DATASETS.get('PascalVOCDataset').METAINFO['palette']
    for name in ('PascalVOC20Dataset', 'COCOObjectDataset'):
        meta = DATASETS.get(name).METAINFO
        assert len({tuple(color) for color in meta['palette']}) == len(meta['classes'])


def test_image_and_label_can_be_scored_at_the_resized_size(tmp_path: Path) -> None:
    paths = make_files(tmp_path, 'labels', '.png', 'lists/val.txt')
    steps = [
        {'type': 'LoadImageFromFile'},
        {'type': 'LoadAnnotations'},
        {'type': 'Resize', 'scale': (8, 6), 'keep_ratio': False},
        {'type': 'ScoreAtThisSize'},
        {'type': 'PackSegInputs'},
    ]
    data = DATASETS.build({'type': 'PascalVOCDataset', 'ann_file': 'lists/val.txt', 'pipeline': steps, **paths})
    sample = data[0]['data_samples']
    assert tuple(sample.ori_shape) == tuple(sample.img_shape) == sample.gt_sem_seg.shape == (6, 8)
    assert set(sample.gt_sem_seg.data.unique().tolist()) == set(LABELS.flatten().tolist())
    # The pool's fingerprint reads the steps.
    assert 'ScoreAtThisSize()' in repr(data.pipeline)
