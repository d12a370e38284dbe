"""Every dataset from small archives in the layout of the official ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from mmseg.datasets import COCOStuffDataset, PascalContextDataset

from tests.prepare import archives
from tests.prepare.archives import SIZE, label, pixels, write_folder, write_tar, write_zip
from tpa_mmseg.errors import TPAError
from tpa_mmseg.prepare import prepare
from tpa_mmseg.prepare.coco_stuff import RAW_IDS
from tpa_mmseg.prepare.context import CATEGORIES
from tpa_mmseg.prepare.output import JOURNAL


def files(folder: Path) -> set[str]:
    """All files but the journal, links included."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob('*') if path.is_file()}
    return found - {JOURNAL}


def values(path: Path) -> list[int]:
    return np.unique(pixels(path)).tolist()


def region(*columns: int) -> np.ndarray:
    """A mask of whole columns."""
    mask = np.zeros(SIZE, dtype=bool)
    mask[:, columns] = True
    return mask


@pytest.mark.parametrize('write', [write_tar, write_zip, write_folder])
def test_voc_takes_the_val_split_as_it_is_out_of_any_archive_or_folder(tmp_path, write):
    content = archives.voc(3)
    result = prepare('voc', [write(tmp_path / 'source', content)], tmp_path / 'out')
    stems = ['2007_000000', '2007_000002', '2007_000004']
    assert (result.images, result.files, result.written) == (3, 7, 7)
    assert files(tmp_path / 'out') == {
        'ImageSets/Segmentation/val.txt',
        *(f'JPEGImages/{stem}.jpg' for stem in stems),
        *(f'SegmentationClass/{stem}.png' for stem in stems),
    }
    for file in files(tmp_path / 'out'):
        assert (tmp_path / 'out' / file).read_bytes() == content[f'VOCdevkit/VOC2012/{file}']


def test_all_is_the_training_split_as_well(tmp_path):
    result = prepare('voc', [write_tar(tmp_path / 'voc.tar', archives.voc(3))], tmp_path / 'out', train=True)
    assert (result.images, result.files) == (3, 14)
    assert (tmp_path / 'out/ImageSets/Segmentation/train.txt').is_file()
    assert (tmp_path / 'out/SegmentationClass/2007_000001.png').is_file()


def test_cityscapes_labels_get_the_train_ids_of_the_official_table(tmp_path):
    official = {7: 0, 8: 1, 11: 2, 12: 3, 13: 4, 17: 5, 19: 6, 20: 7, 21: 8, 22: 9, 23: 10}
    official |= {24: 11, 25: 12, 26: 13, 27: 14, 28: 15, 31: 16, 32: 17, 33: 18}
    size = (4, 3 * 34)
    stems = ['val/bonn/bonn_000000_000019', 'val/ulm/ulm_000001_000019', 'train/jena/jena_000000_000019']
    images, labels = archives.cityscapes(stems, range(34), size)
    sources = [write_zip(tmp_path / 'leftImg8bit.zip', images), write_zip(tmp_path / 'gtFine.zip', labels)]
    assert prepare('cityscapes', sources, tmp_path / 'out').images == 2
    assert files(tmp_path / 'out') == {
        *(f'leftImg8bit/{stem}_leftImg8bit.png' for stem in stems[:2]),
        *(f'gtFine/{stem}_gtFine_labelTrainIds.png' for stem in stems[:2]),
    }
    result = pixels(tmp_path / f'out/gtFine/{stems[0]}_gtFine_labelTrainIds.png')
    assert result[0, ::3].tolist() == [official.get(identity, 255) for identity in range(34)]


def test_ade20k_labels_keep_their_numbers(tmp_path):
    content = archives.ade20k(2)
    prepare('ade20k', [write_zip(tmp_path / 'ADEChallengeData2016.zip', content)], tmp_path / 'out')
    names = [f'ADE_val_{i:08d}' for i in (1, 2)]
    assert files(tmp_path / 'out') == {
        *(f'images/validation/{name}.jpg' for name in names),
        *(f'annotations/validation/{name}.png' for name in names),
    }
    assert values(tmp_path / 'out/annotations/validation/ADE_val_00000002.png') == [0, 2, 150]


def coco(tmp_path: Path, ids: list[list[int]]) -> list[Path]:
    return [
        write_zip(tmp_path / 'val2017.zip', archives.coco_images(len(ids))),
        write_zip(tmp_path / 'stuffthingmaps_trainval2017.zip', archives.coco_stuff(ids)),
    ]


def test_coco_stuff_labels_get_consecutive_numbers(tmp_path):
    result = prepare('coco_stuff', coco(tmp_path, [[0, 10, 12, 255], [89, 91, 181]]), tmp_path / 'out')
    assert result.images == 2
    assert values(tmp_path / 'out/annotations/val2017/000000000007_labelTrainIds.png') == [0, 10, 11, 255]
    assert values(tmp_path / 'out/annotations/val2017/000000000014_labelTrainIds.png') == [79, 80, 170]
    assert (tmp_path / 'out/images/val2017/000000000014.jpg').is_file()


def test_every_class_of_coco_stuff_has_one_id():
    assert len(RAW_IDS) == len(COCOStuffDataset.METAINFO['classes']) == 171


def test_coco_object_has_things_from_one_and_everything_else_as_background(tmp_path):
    sources = coco(tmp_path, [[0, 12, 255], [89, 91, 181]])
    prepare('coco_object', sources, tmp_path / 'out')
    assert values(tmp_path / 'out/annotations/val2017/000000000007_instanceTrainIds.png') == [0, 1, 12]
    assert values(tmp_path / 'out/annotations/val2017/000000000014_instanceTrainIds.png') == [0, 80]


def test_coco_object_is_the_same_from_the_prepared_coco_stuff_in_whose_folder_it_lies(tmp_path):
    sources = coco(tmp_path, [[0, 12, 255], [89, 91, 181]])
    prepare('coco_stuff', sources, tmp_path / 'stuff')
    result = prepare('coco_object', [tmp_path / 'stuff'], tmp_path / 'stuff')
    assert (result.images, result.written) == (2, 2)
    prepare('coco_object', sources, tmp_path / 'object')
    for name in ('000000000007', '000000000014'):
        path = f'annotations/val2017/{name}_instanceTrainIds.png'
        assert np.array_equal(pixels(tmp_path / 'stuff' / path), pixels(tmp_path / 'object' / path))


def test_coco_object_from_instances_draws_later_over_earlier_ones_and_all_over_crowds(tmp_path):
    square = [5, 2, 15, 2, 15, 12, 5, 12]
    crowd = {'size': list(SIZE), 'counts': [0, 600]}
    annotations = [
        {'image_id': 7, 'category_id': 1, 'segmentation': [square], 'iscrowd': 0},
        {'image_id': 7, 'category_id': 13, 'segmentation': [[10, 2, 20, 2, 20, 12, 10, 12]], 'iscrowd': 0},
        {'image_id': 7, 'category_id': 90, 'segmentation': crowd, 'iscrowd': 1},
    ]
    sizes = [{'id': i, 'height': SIZE[0], 'width': SIZE[1]} for i in (7, 14)]
    content = json.dumps({'images': sizes, 'annotations': annotations}).encode()
    sources = [
        write_zip(tmp_path / 'val2017.zip', archives.coco_images(2)),
        write_zip(tmp_path / 'annotations_trainval2017.zip', {'annotations/instances_val2017.json': content}),
    ]
    prepare('coco_object', sources, tmp_path / 'out')
    first = pixels(tmp_path / 'out/annotations/val2017/000000000007_instanceTrainIds.png')
    assert (first[5, 7], first[5, 12], first[5, 25]) == (1, 12, 80)
    assert values(tmp_path / 'out/annotations/val2017/000000000014_instanceTrainIds.png') == [0]


def test_context_labels_from_the_annotation_file(tmp_path):
    phases = {'2008_000003': 'val', '2008_000004': 'val', '2008_000000': 'train', '2008_000009': 'test'}
    regions = {
        '2008_000003': [(2, region(*range(10))), (458, region(*range(5, 12)))],
        '2008_000004': [(284, region(0))],
        '2008_000000': [(9, region(0))],
    }
    (tmp_path / 'trainval_merged.json').write_bytes(archives.context_json(regions, phases))
    voc = write_tar(tmp_path / 'VOCtrainval_03-May-2010.tar', archives.voc2010())
    result = prepare('context', [voc, tmp_path / 'trainval_merged.json'], tmp_path / 'out')
    assert result.images == 2
    assert (tmp_path / 'out/ImageSets/SegmentationContext/val.txt').read_text() == '2008_000003\n2008_000004\n'
    assert (tmp_path / 'out/JPEGImages/2008_000003.jpg').is_file()
    row = pixels(tmp_path / 'out/SegmentationClassContext/2008_000003.png')[0]
    assert row.tolist() == [1] * 5 + [59] * 7 + [0] * 18
    assert values(tmp_path / 'out/SegmentationClassContext/2008_000004.png') == [0, 37]


def test_context_labels_from_the_matlab_files_with_the_list_of_voc(tmp_path):
    numbers = np.zeros(SIZE, dtype=np.uint16)
    numbers[:, 5:] = 427
    numbers[:, 20:] = 459  # one of the 400 that are background
    stems = [f'2008_{i:06d}' for i in range(6)]
    maps = {f'trainval/{stem}.mat': archives.context_map(numbers) for stem in reversed(stems)}
    sources = [
        write_tar(tmp_path / 'VOCtrainval_03-May-2010.tar', archives.voc2010()),
        write_tar(tmp_path / 'trainval.tar.gz', maps),
    ]
    result = prepare('context', sources, tmp_path / 'out')
    assert result.images == 3
    assert (tmp_path / 'out/ImageSets/SegmentationContext/val.txt').read_text().split() == stems[3:]
    row = pixels(tmp_path / 'out/SegmentationClassContext/2008_000005.png')[0]
    assert row.tolist() == [0] * 5 + [55] * 15 + [0] * 10


def test_another_release_of_context_replaces_what_was_made_from_the_first(tmp_path):
    voc = write_tar(tmp_path / 'voc.tar', archives.voc2010())
    maps = {f'{i}': archives.context_map(np.full(SIZE, 2)) for i in range(6)}
    maps = write_tar(tmp_path / 'trainval.tar.gz', {f'trainval/2008_00000{i}.mat': m for i, m in maps.items()})
    prepare('context', [voc, maps], tmp_path / 'out')
    phases = {'2008_000003': 'val', '2008_000004': 'val'}
    merged = tmp_path / 'trainval_merged.json'
    merged.write_bytes(archives.context_json({'2008_000003': [(9, region(0))]}, phases))
    prepare('context', [voc, merged], tmp_path / 'out')
    assert values(tmp_path / 'out/SegmentationClassContext/2008_000003.png') == [0, 2]
    assert (tmp_path / 'out/ImageSets/SegmentationContext/val.txt').read_text().split() == list(phases)


def test_the_59_classes_of_context_are_in_the_order_of_mmseg():
    # Numbers of a few of the 459 categories in the dataset's own list.
    known = {'aeroplane': 2, 'bag': 9, 'bird': 25, 'person': 284, 'table': 397, 'tvmonitor': 427, 'wood': 458}
    classes = PascalContextDataset.METAINFO['classes'][1:]
    assert len(CATEGORIES) == len(classes) == 59 and list(CATEGORIES) == sorted(CATEGORIES)
    assert {name: CATEGORIES[classes.index(name)] for name in known} == known


@pytest.mark.parametrize('value', [11, 90, 182])
def test_a_label_that_is_not_of_coco_stuff_is_refused_by_name_and_value(tmp_path, value):
    with pytest.raises(TPAError, match=rf'val2017/000000000007.png in .*contains the value {value},'):
        prepare('coco_stuff', coco(tmp_path, [[0, value]]), tmp_path / 'out')


def test_a_category_that_context_does_not_score_is_refused(tmp_path):
    merged = tmp_path / 'trainval_merged.json'
    merged.write_bytes(archives.context_json({'2008_000003': [(3, region(0))]}, {'2008_000003': 'val'}))
    voc = write_tar(tmp_path / 'voc.tar', archives.voc2010())
    with pytest.raises(TPAError, match='2008_000003 in .*contains the category 3'):
        prepare('context', [voc, merged], tmp_path / 'out')


def test_a_label_in_colors_is_refused(tmp_path):
    content = {f'val2017/{7:012d}.png': archives.photo(0, 'PNG')}
    sources = [
        write_zip(tmp_path / 'val2017.zip', archives.coco_images(1)),
        write_zip(tmp_path / 'stuffthingmaps_trainval2017.zip', content),
    ]
    with pytest.raises(TPAError, match='is an image of mode RGB'):
        prepare('coco_stuff', sources, tmp_path / 'out')


def test_a_label_that_is_missing_is_named(tmp_path):
    sources = coco(tmp_path, [[0], [1]])
    write_zip(sources[0], archives.coco_images(4))
    with pytest.raises(TPAError, match=r'Missing val2017/000000000021.png and 1 more, required by an image of val2017'):
        prepare('coco_stuff', sources, tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
    ('dataset', 'sentence'),
    [
        ('voc', r'No ImageSets/Segmentation/val.txt in .*\. Add VOCtrainval_11-May-2012.tar'),
        ('context', r'No JPEGImages/\*.jpg in .*\. Add VOCtrainval_03-May-2010.tar'),
        ('coco_stuff', r'No val2017/\*.jpg in .*\. Add val2017.zip'),
        ('coco_object', r'No val2017/\*.jpg in .*\. Add val2017.zip'),
        ('cityscapes', r'No leftImg8bit/val/\*/\*_leftImg8bit.png in .*\. Add leftImg8bit_trainvaltest.zip'),
        ('ade20k', r'No images/validation/\*.jpg in .*\. Add ADEChallengeData2016.zip'),
    ],
)
def test_the_wrong_archive_is_answered_with_the_right_one(tmp_path, dataset, sentence):
    wrong = write_zip(tmp_path / 'wrong.zip', {'README': b'', 'train2017/1.png': label([0])})
    with pytest.raises(TPAError, match=sentence):
        prepare(dataset, [wrong], tmp_path / 'out')


def test_labels_of_coco_object_may_come_from_three_places(tmp_path):
    images = write_zip(tmp_path / 'val2017.zip', archives.coco_images(1))
    with pytest.raises(TPAError, match='stuffthingmaps_trainval2017.zip, .* or annotations_trainval2017.zip'):
        prepare('coco_object', [images], tmp_path / 'out')


def test_an_annotation_file_of_another_data_set_is_named(tmp_path):
    (tmp_path / 'trainval_merged.json').write_text('{"images": []}')
    voc = write_tar(tmp_path / 'voc.tar', archives.voc2010())
    with pytest.raises(TPAError, match='trainval_merged.json is not the trainval_merged.json of Pascal Context'):
        prepare('context', [voc, tmp_path / 'trainval_merged.json'], tmp_path / 'out')
