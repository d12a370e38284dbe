from __future__ import annotations

import numpy as np
import pytest

from tpa_mmseg.datasets.palette import oklab
from tpa_mmseg.visualization import class_palette, distinct_colors


@pytest.mark.parametrize('count', [1, 3, 21, 171, 847])
def test_generated_colors_differ_and_stay_the_same(count):
    colors = distinct_colors(count)
    assert colors.shape == (count, 3) and colors.dtype == np.uint8
    assert len({tuple(color) for color in colors}) == count
    distinct_colors.cache_clear()
    np.testing.assert_array_equal(distinct_colors(count), colors)


def test_generated_colors_are_better_separated_than_random_ones():
    def nearest(colors):
        lab = oklab(colors)
        distance = np.linalg.norm(lab[:, None] - lab, axis=-1) + np.eye(len(lab)) * 9
        return distance.min()

    random = np.random.default_rng(0).integers(0, 256, (21, 3))
    assert nearest(distinct_colors(21)) > 3 * nearest(random)


def test_more_classes_keep_the_colors_of_the_first():
    np.testing.assert_array_equal(distinct_colors(21)[:5], distinct_colors(5))


def test_palette_is_used_only_where_it_fits_the_classes():
    palette = [(1, 2, 3), (4, 5, 6)]
    assert class_palette(2, palette).tolist() == [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(class_palette(3, palette), distinct_colors(3))
    np.testing.assert_array_equal(class_palette(3, None), distinct_colors(3))


def test_oklab_of_white_grey_and_black_has_no_color():
    lab = oklab(np.array([[255] * 3, [128] * 3, [0] * 3]))
    np.testing.assert_allclose(lab[:, 1:], 0, atol=1e-4)
    np.testing.assert_allclose(lab[[0, 2], 0], [1, 0], atol=1e-4)
