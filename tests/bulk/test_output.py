"""Masks are those of COCO; the files of a shard are complete or not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pycocotools import mask as coco

from tpa_mmseg.apis import ImageSource, Segmentation
from tpa_mmseg.bulk.output import FORMS, encode, mask_of, run_lengths, shard_files


@given(arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=7), elements=st.sampled_from([0, 1, 2, 255])))
def test_masks_are_those_of_coco_and_cover_every_pixel_once(labels: np.ndarray) -> None:
    height, width = labels.shape
    masks = run_lengths(labels)
    assert [label for label, _ in masks] == np.unique(labels).tolist()
    for label, counts in masks:
        mask = mask_of({'height': height, 'width': width, 'counts': counts})
        assert np.array_equal(mask, labels == label)
        encoded = coco.frPyObjects({'size': [height, width], 'counts': counts}, height, width)
        assert np.array_equal(coco.decode(encoded), mask)


@pytest.mark.parametrize('form', ('png', 'rle'))
def test_files_appear_when_all_is_written_and_leftovers_go(form: str, tmp_path: Path) -> None:
    labels = np.zeros((4, 5), np.uint8)
    result = Segmentation(ImageSource('a.png', b''), ('cat', 'dog'), [[0, 0, 0]] * 2, labels, labels)
    (tmp_path / '.labels.tar.x.tmp').touch()
    with pytest.raises(KeyboardInterrupt), shard_files(tmp_path, form) as add:
        add(result, encode(result, form))
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    with shard_files(tmp_path, form) as add:
        add(result, encode(result, form))
        assert not [path for path in tmp_path.iterdir() if path.suffix != '.tmp']
    assert sorted(path.name for path in tmp_path.iterdir()) == ['areas.parquet', FORMS[form]]
