from __future__ import annotations

import numpy as np
import pytest
from mmseg.utils import get_palette

from tpa_mmseg.datasets.palette import BACKGROUND_COLOR, DIFFERENCE_COLORS, oklab
from tpa_mmseg.miniature.world import PALETTE
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


# Another simulation than that which the colors were chosen with: Viénot et al. (1999) for protanopia and deuteranopia,
# and the same construction for tritanopia, on the cones of linear RGB.
CONES = np.array([[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]])
BLINDNESS = {
    'none': np.eye(3),
    'protanopia': np.array([[0, 2.02344, -2.52581], [0, 1, 0], [0, 0, 1]]),
    'deuteranopia': np.array([[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]]),
    'tritanopia': np.array([[1, 0, 0], [0, 1, 0], [-0.395913, 0.801109, 0]]),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def cielab(rgb: np.ndarray, blindness: str) -> np.ndarray:
    """(n, 3) CIELAB of colors as people with a color blindness see them."""
    unit = np.asarray(rgb, float) / 255
    linear = np.where(unit <= 0.04045, unit / 12.92, ((unit + 0.055) / 1.055) ** 2.4)
    linear = (linear @ (np.linalg.inv(CONES) @ BLINDNESS[blindness] @ CONES).T).clip(0, 1)
    share = linear @ XYZ.T / XYZ.sum(1)
    x, y, z = np.where(share > 216 / 24389, np.cbrt(share), (24389 / 27 * share + 16) / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], 1)


def least_distance(colors: np.ndarray, others: np.ndarray | None, blindness: str) -> float:
    """Distance of the nearest two colors: of one list, or one of each list."""
    lab = cielab(colors, blindness)
    distance = np.linalg.norm(lab[:, None] - cielab(colors if others is None else others, blindness), axis=-1)
    return float((distance + 999 * np.eye(len(lab)) if others is None else distance).min())


@pytest.mark.parametrize('blindness', BLINDNESS)
def test_color_blind_people_can_tell_colors_apart(blindness):
    """Distances in CIELAB; one of 2.3 can just be seen."""
    with_truth, without = DIFFERENCE_COLORS[:4], DIFFERENCE_COLORS[4:]
    assert least_distance(with_truth, None, blindness) > 50
    assert least_distance(without, None, blindness) > 60
    assert least_distance(distinct_colors(8), None, blindness) > 15
    assert least_distance(distinct_colors(12), None, blindness) > 5
    assert least_distance(np.array(PALETTE), None, blindness) > 6


@pytest.mark.parametrize('count', [1, 12, 150])
def test_generated_colors_are_not_those_of_the_difference_map(count):
    assert least_distance(distinct_colors(count), DIFFERENCE_COLORS, 'none') > 15


@pytest.mark.parametrize('name', ['voc', 'ade', 'cityscapes', 'pcontext', 'cocostuff', 'miniature'])
def test_benchmarks_keep_their_colors_but_for_those_of_the_difference_map(name):
    given = [*PALETTE, BACKGROUND_COLOR] if name == 'miniature' else get_palette(name)
    colors = class_palette(len(given), given)
    assert least_distance(colors, DIFFERENCE_COLORS, 'none') > 10
    moved = (colors != np.array(given)).any(1)
    assert moved.mean() < 0.15 and (name != 'miniature' or not moved.any())
    assert len(np.unique(colors, axis=0)) == len(np.unique(given, axis=0))
    np.testing.assert_array_equal(class_palette(len(given), colors.tolist()), colors)
