"""Odd images work; images that cannot be read are named."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from mmengine.dataset import Compose
from mmengine.registry import init_default_scope

from tpa_mmseg.datasets import LoadImage, LoadLabels, SafeResize, add_read_checks
from tpa_mmseg.errors import TPAError

init_default_scope('mmseg')


def image(shape: tuple, dtype=np.uint8) -> np.ndarray:
    return np.random.default_rng(0).integers(0, np.iinfo(dtype).max, shape).astype(dtype)


def load(path) -> np.ndarray:
    return LoadImage().transform({'img_path': str(path)})['img']


@pytest.mark.parametrize(
    'shape, dtype',
    [((9, 7), np.uint8), ((9, 7, 4), np.uint8), ((9, 7, 3), np.uint16), ((1, 30, 3), np.uint8)],
    ids=['gray', 'RGBA', '16 bit', 'one row'],
)
def test_odd_images_become_eight_bit_color(tmp_path, shape, dtype):
    cv2.imwrite(str(tmp_path / 'odd.png'), image(shape, dtype))
    loaded = load(tmp_path / 'odd.png')
    assert loaded.shape == (*shape[:2], 3)
    assert loaded.dtype == np.uint8


def test_a_missing_image_is_named(tmp_path):
    with pytest.raises(TPAError, match=r'Cannot read image .*missing\.png'):
        load(tmp_path / 'missing.png')


def test_a_file_that_is_no_image_is_named(tmp_path):
    (tmp_path / 'text.png').write_text('no image', encoding='utf-8')
    with pytest.raises(TPAError, match=r'Cannot decode image .*text\.png \(not one of the formats JPEG, PNG'):
        load(tmp_path / 'text.png')


def test_an_empty_file_is_named(tmp_path):
    (tmp_path / 'empty.png').touch()
    with pytest.raises(TPAError, match=r'empty\.png'):
        load(tmp_path / 'empty.png')


def test_half_a_jpeg_is_named_rather_than_filled_with_grey(tmp_path):
    cv2.imwrite(str(tmp_path / 'half.jpg'), image((64, 64, 3)))
    data = (tmp_path / 'half.jpg').read_bytes()
    (tmp_path / 'half.jpg').write_bytes(data[: len(data) // 2])
    with pytest.raises(TPAError, match=r'half\.jpg \(truncated'):
        load(tmp_path / 'half.jpg')


@pytest.mark.parametrize('shape', [(1, 5000, 3), (5000, 1, 3), (1, 1, 3)])
def test_a_thin_image_keeps_at_least_a_pixel_per_side(shape):
    result = SafeResize(scale=(2048, 336), keep_ratio=True)({'img': image(shape)})
    assert min(result['img'].shape[:2]) >= 1
    assert max(result['img'].shape[:2]) <= 2048
    assert result['img_shape'] == result['img'].shape[:2]


def test_ordinary_images_are_resized_as_by_mmseg():
    stock = Compose([{'type': 'Resize', 'scale': (2048, 33), 'keep_ratio': True}])
    ours = Compose([{'type': 'SafeResize', 'scale': (2048, 33), 'keep_ratio': True}])
    for shape in ((50, 70, 3), (20, 400, 3)):
        np.testing.assert_array_equal(ours({'img': image(shape)})['img'], stock({'img': image(shape)})['img'])


@pytest.mark.parametrize('shape', [(1, 30), (30, 1), (1, 1), (4, 5)])
def test_labels_keep_their_shape_however_thin(tmp_path, shape):
    labels = image(shape)
    cv2.imwrite(str(tmp_path / 'labels.png'), labels)
    info = {'seg_map_path': str(tmp_path / 'labels.png'), 'ori_shape': shape, 'reduce_zero_label': False}
    result = LoadLabels()({**info, 'label_map': None, 'seg_fields': []})
    np.testing.assert_array_equal(result['gt_seg_map'], labels)


def test_labels_that_cannot_be_read_are_named(tmp_path):
    info = {'seg_map_path': str(tmp_path / 'gone.png'), 'ori_shape': (1, 1), 'seg_fields': []}
    with pytest.raises(TPAError, match=r'Cannot read labels .*gone\.png'):
        LoadLabels()({**info, 'reduce_zero_label': False})
    (tmp_path / 'gone.png').write_text('text', encoding='utf-8')
    with pytest.raises(TPAError, match=r'Cannot read labels .*gone\.png'):
        LoadLabels()({**info, 'reduce_zero_label': False})


def test_hardening_replaces_only_the_stock_steps():
    pipeline = [{'type': 'LoadImageFromFile'}, {'type': 'LoadAnnotations'}, {'type': 'PackSegInputs'}]
    add_read_checks(pipeline)
    assert [step['type'] for step in pipeline] == ['LoadImage', 'LoadLabels', 'PackSegInputs']
