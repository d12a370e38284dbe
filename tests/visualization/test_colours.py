from __future__ import annotations

import numpy as np
import pytest

from tpa_mmseg.visualization import class_colours, separated_colours
from tpa_mmseg.visualization.colours import oklab


@pytest.mark.parametrize('count', [1, 3, 21, 171, 847])
def test_generated_colours_differ_and_stay_the_same(count):
    colours = separated_colours(count)
    assert colours.shape == (count, 3) and colours.dtype == np.uint8
    assert len({tuple(colour) for colour in colours}) == count
    separated_colours.cache_clear()
    np.testing.assert_array_equal(separated_colours(count), colours)


def test_generated_colours_are_better_separated_than_random_ones():
    def nearest(colours):
        lab = oklab(colours)
        distance = np.linalg.norm(lab[:, None] - lab, axis=-1) + np.eye(len(lab)) * 9
        return distance.min()

    random = np.random.default_rng(0).integers(0, 256, (21, 3))
    assert nearest(separated_colours(21)) > 3 * nearest(random)


def test_more_classes_keep_the_colours_of_the_first():
    np.testing.assert_array_equal(separated_colours(21)[:5], separated_colours(5))


def test_palette_is_used_only_where_it_fits_the_classes():
    palette = [(1, 2, 3), (4, 5, 6)]
    assert class_colours(2, palette).tolist() == [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(class_colours(3, palette), separated_colours(3))
    np.testing.assert_array_equal(class_colours(3, None), separated_colours(3))


def test_oklab_of_white_grey_and_black_has_no_colour():
    lab = oklab(np.array([[255] * 3, [128] * 3, [0] * 3]))
    np.testing.assert_allclose(lab[:, 1:], 0, atol=1e-4)
    np.testing.assert_allclose(lab[[0, 2], 0], [1, 0], atol=1e-4)
