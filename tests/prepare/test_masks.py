"""Masks of annotation files, bit-equal to those of COCO's own package (pycocotools 2.0, in coco_masks.json)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.prepare import archives
from tests.prepare.archives import packed, write_tar, write_zip
from tpa_mmseg.errors import TPAError
from tpa_mmseg.prepare import prepare
from tpa_mmseg.prepare.masks import decode_mask

REFERENCE = json.loads((Path(__file__).parent / 'coco_masks.json').read_text(encoding='utf-8'))


@pytest.mark.parametrize('mask', REFERENCE)
def test_rle_is_that_of_coco(mask):
    decoded = decode_mask({'size': mask['size'], 'counts': mask['counts']}, *mask['size'])
    assert decoded.shape == tuple(mask['size']) and decoded.dtype == bool
    assert decoded.sum() == mask['area']
    assert packed(decoded) == mask['counts']


@pytest.mark.parametrize('mask', [mask for mask in REFERENCE if mask['polygon']])
def test_polygons_are_filled_by_the_rule_of_coco(mask):
    expected = decode_mask({'size': mask['size'], 'counts': mask['counts']}, *mask['size'])
    assert np.array_equal(decode_mask([mask['polygon']], *mask['size']), expected)


def test_plain_counts_go_down_the_columns():
    mask = decode_mask({'size': [2, 3], 'counts': [1, 2, 3]}, 2, 3)
    assert mask.tolist() == [[False, True, False], [True, False, False]]


def test_several_polygons_are_one_mask():
    squares = [[0, 0, 2, 0, 2, 2, 0, 2], [3, 3, 5, 3, 5, 5, 3, 5]]
    mask = decode_mask(squares, 6, 6)
    assert mask[:2, :2].all() and mask[3:5, 3:5].all() and mask.sum() == 8


@pytest.mark.parametrize('polygons', [[], [[1, 1, 4, 4]], [[1, 1]]])
def test_polygons_without_area_are_an_empty_mask(polygons):
    assert decode_mask(polygons, 6, 5).shape == (6, 5)
    assert not decode_mask(polygons, 6, 5).any()


@pytest.mark.parametrize(
    ('segmentation', 'reason'),
    [
        ({'size': [3, 2], 'counts': [6]}, 'mask of'),
        ({'size': [2, 3], 'counts': [5]}, 'RLE of 5 pixels'),
        ({'size': [2, 3], 'counts': [7, -1]}, 'RLE of other values'),
        ({'size': [2, 3], 'counts': 'é'.encode()}, 'invalid RLE string'),
        ({'size': [2, 3], 'counts': 'é'}, 'invalid RLE string'),
        ({'size': [2, 3], 'counts': ''}, 'invalid RLE string'),
        ({'size': [2, 3], 'counts': '1P'}, 'invalid RLE string'),
        ({'size': [2, 3], 'counts': '7'}, 'Invalid RLE mask'),
    ],
)
def test_a_mask_of_another_image_is_refused(segmentation, reason):
    with pytest.raises(ValueError, match=reason):
        decode_mask(segmentation, 2, 3)


def test_a_truncated_string_is_refused_or_the_rest_is_background():
    """pycocotools does not clear the pixels behind the end of a string: whatever is there must not become a mask."""
    for _ in range(50):
        noise = np.full(100 * 100, 255, dtype=np.uint8)  # freed at once: likely the memory of the next mask
        del noise
        try:
            mask = decode_mask({'size': [100, 100], 'counts': b'12'}, 100, 100)
        except ValueError as error:
            assert 'fewer than 100 x 100 pixels' in str(error)
        else:
            assert mask.sum() == 2


def test_numbers_of_every_length_survive_packing():
    counts = [0, 1, 15, 16, 31, 32, 1000, 5, 100_000, 3]
    mask = np.repeat(np.arange(len(counts)) % 2 == 1, counts)[:, None]
    assert np.array_equal(decode_mask({'size': [*mask.shape], 'counts': packed(mask)}, *mask.shape), mask)


def test_without_pycocotools_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'pycocotools', None)
    (tmp_path / 'trainval_merged.json').write_bytes(archives.context_json({}, {'2008_000003': 'val'}))
    voc = write_tar(tmp_path / 'voc.tar', archives.voc2010())
    with pytest.raises(TPAError, match=r"need pycocotools. Install it with: pip install 'tpa_mmseg\[data\]'"):
        prepare('context', [voc, tmp_path / 'trainval_merged.json'], tmp_path / 'out')
    sources = [
        write_zip(tmp_path / 'val2017.zip', archives.coco_images(1)),
        write_zip(tmp_path / 'annotations.zip', {'annotations/instances_val2017.json': b'{}'}),
    ]
    with pytest.raises(TPAError, match='need pycocotools'):
        prepare('coco_object', sources, tmp_path / 'out')
    # The other sources do not need it.
    prepare('voc', [write_tar(tmp_path / 'voc12.tar', archives.voc(1))], tmp_path / 'out')
