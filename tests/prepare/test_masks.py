"""Masks of annotation files, against those of COCO's own package (pycocotools 2.0, in coco_masks.json)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.prepare.archives import packed
from tpa_mmseg.prepare.masks import decode, rasterize, unpack

REFERENCE = json.loads((Path(__file__).parent / 'coco_masks.json').read_text(encoding='utf-8'))


@pytest.mark.parametrize('mask', REFERENCE)
def test_run_lengths_are_those_of_coco(mask):
    decoded = decode({'size': mask['size'], 'counts': mask['counts']}, *mask['size'])
    assert decoded.shape == tuple(mask['size']) and decoded.dtype == bool
    assert decoded.sum() == mask['area']
    assert packed(decoded) == mask['counts']


@pytest.mark.parametrize('mask', [mask for mask in REFERENCE if mask['polygon']])
def test_polygons_are_filled_by_the_rule_of_coco(mask):
    runs = decode({'size': mask['size'], 'counts': mask['counts']}, *mask['size'])
    assert np.array_equal(rasterize(mask['polygon'], *mask['size']), runs)


def test_plain_run_lengths_go_down_the_columns():
    mask = decode({'size': [2, 3], 'counts': [1, 2, 3]}, 2, 3)
    assert mask.tolist() == [[False, True, False], [True, False, False]]


def test_several_polygons_are_one_mask():
    squares = [[0, 0, 2, 0, 2, 2, 0, 2], [3, 3, 5, 3, 5, 5, 3, 5]]
    mask = decode(squares, 6, 6)
    assert mask[:2, :2].all() and mask[3:5, 3:5].all() and mask.sum() == 8


@pytest.mark.parametrize(
    ('segmentation', 'reason'),
    [
        ({'size': [3, 2], 'counts': [6]}, 'mask of'),
        ({'size': [2, 3], 'counts': [5]}, 'run lengths for 5 pixels'),
        ({'size': [2, 3], 'counts': 'é'.encode()}, 'no packed string'),
    ],
)
def test_a_mask_of_another_image_is_refused(segmentation, reason):
    with pytest.raises(ValueError, match=reason):
        decode(segmentation, 2, 3)


def test_numbers_of_every_length_survive_packing():
    counts = [0, 1, 15, 16, 31, 32, 1000, 5, 100_000, 3]
    mask = np.repeat(np.arange(len(counts)) % 2 == 1, counts)[:, None]
    assert unpack(packed(mask)).tolist() == counts
