from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from tpa_mmseg.visualization import DIFFERENCE_COLORS, Difference, colorize, comparison, difference_map, panel_size
from tpa_mmseg.visualization.panels import class_legend, difference_legend, fit_image, label_panel, resample

pytestmark = pytest.mark.filterwarnings('ignore:DejaVu Sans cannot draw')

NAMES = ['wall', 'Straße', '汽车', 'sky']
BLUE, ORANGE, LIGHT_GRAY, DARK_GRAY, PINK = (0, 150, 255), (230, 135, 30), (235, 235, 235), (80, 80, 80), (225, 75, 255)


def labels(height, width, seed=0, num_classes=4):
    return np.random.default_rng(seed).integers(0, num_classes, (height, width))


def colors_of(picture: Image.Image) -> set:
    return {color for _, color in picture.getcolors(1 << 24)}


def test_difference_map_tells_the_five_cases_apart():
    truth = np.array([[0, 0, 0, 0, 0, 255]])
    host = np.array([[0, 1, 0, 1, 1, 0]])
    tpa = np.array([[0, 0, 1, 1, 2, 1]])
    assert difference_map(host, tpa, truth).tolist() == [
        [
            Difference.BOTH_RIGHT,
            Difference.CORRECTED,
            Difference.BROKEN,
            Difference.BOTH_WRONG,
            Difference.BOTH_WRONG,
            Difference.IGNORED,
        ]
    ]


def test_difference_colors_are_blue_orange_and_grays():
    codes = np.array([[Difference.CORRECTED, Difference.BROKEN, Difference.BOTH_RIGHT, Difference.BOTH_WRONG, 255]])
    picture = colorize(codes, DIFFERENCE_COLORS)
    assert [tuple(pixel) for pixel in picture[0]] == [BLUE, ORANGE, LIGHT_GRAY, DARK_GRAY, (255, 255, 255)]


def test_without_truth_the_difference_shows_where_labels_changed():
    codes = difference_map(np.array([[0, 1]]), np.array([[0, 2]]))
    assert codes.tolist() == [[Difference.UNCHANGED, Difference.CHANGED]]
    assert [tuple(pixel) for pixel in colorize(codes, DIFFERENCE_COLORS)[0]] == [LIGHT_GRAY, PINK]


def test_another_ignore_index_is_respected():
    zeros = np.zeros((1, 2), int)
    assert difference_map(zeros, zeros, np.array([[0, 9]]), ignore_index=9)[0, 1] == Difference.IGNORED


@pytest.mark.parametrize('label', [-1, 4, 255, 70000])
def test_labels_that_are_no_class_are_white(label):
    colors = np.array([(1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11, 12)], dtype=np.uint8)
    picture = colorize(np.array([[0, label, 3]]), colors)
    assert picture.tolist() == [[[1, 2, 3], [255, 255, 255], [10, 11, 12]]]


def test_uint8_labels_of_many_classes_keep_their_colors():
    colors = np.arange(900).reshape(300, 3).astype(np.uint8)
    picture = colorize(np.array([[255, 0]], dtype=np.uint8), colors)
    assert picture.tolist() == [[colors[255].tolist(), colors[0].tolist()]]


def test_ignored_pixels_of_a_panel_are_hatched():
    ignored = label_panel(np.full((40, 40), 255), DIFFERENCE_COLORS, (40, 40))
    assert colors_of(ignored) == {(255, 255, 255), (190, 190, 190)}
    known = label_panel(np.zeros((40, 40), int), DIFFERENCE_COLORS, (40, 40))
    assert colors_of(known) == {LIGHT_GRAY}


@pytest.mark.parametrize(
    ('size', 'shown'),
    [
        ((375, 500), (375, 500)),  # as it is
        ((1200, 1800), (427, 640)),  # reduced
        ((3000, 200), (640, 43)),  # tall
        ((200, 1400), (183, 1280)),  # a strip gets a line of its own
        ((7, 9), (371, 477)),  # enlarged by 53
        ((1, 1), (480, 480)),
        ((1, 5000), (16, 1280)),  # never thinner than a line that can be seen
    ],
)
def test_panels_have_a_sensible_size(size, shown):
    assert panel_size(*size) == shown


def test_resampling_takes_the_nearest_label_and_invents_none():
    small = np.array([[0, 3], [1, 2]])
    assert resample(small, (4, 4)).tolist() == [[0, 0, 3, 3], [0, 0, 3, 3], [1, 1, 2, 2], [1, 1, 2, 2]]
    assert resample(resample(small, (8, 6)), (2, 2)).tolist() == small.tolist()


def test_tiny_input_is_enlarged_in_squares_and_a_large_one_is_smoothed():
    checkers = Image.fromarray((np.indices((4, 4)).sum(0) % 2 * 255).astype(np.uint8)).convert('RGB')
    assert colors_of(fit_image(checkers, (40, 40))) == {(0, 0, 0), (255, 255, 255)}
    assert len(colors_of(fit_image(checkers, (3, 3)))) > 2


def test_picture_has_five_panels_and_grows_by_one_panel_for_each():
    host, tpa, truth = labels(300, 400), labels(300, 400, 1), labels(300, 400, 2)
    image = Image.new('RGB', (400, 300), (9, 99, 199))
    five = comparison(tpa, NAMES, host, truth, image)
    four = comparison(tpa, NAMES, host, truth)
    one = comparison(tpa, NAMES)
    assert five.width > 5 * 400 > four.width > 4 * 400 > one.width > 400
    assert (9, 99, 199) in colors_of(five) and (9, 99, 199) not in colors_of(four)
    assert {BLUE, ORANGE, LIGHT_GRAY, DARK_GRAY} <= colors_of(five)


def test_picture_without_host_has_no_difference():
    picture = comparison(labels(300, 400), NAMES, ground_truth=labels(300, 400, 1))
    assert not {BLUE, ORANGE} & colors_of(picture)


def test_strips_are_stacked():
    picture = comparison(labels(20, 1000), NAMES, labels(20, 1000, 1), labels(20, 1000, 2))
    assert 1000 < picture.width < 1100
    assert picture.height > 4 * 20


@pytest.mark.parametrize('size', [(1, 1), (1, 400), (400, 1), (3, 5), (2000, 30)])
def test_odd_sizes_can_be_drawn(size):
    picture = comparison(labels(*size), NAMES, labels(*size, 1), labels(*size, 2), Image.new('RGB', size[::-1]))
    assert max(picture.size) < 4000


def test_panel_shows_every_pixel_of_an_enlarged_map():
    tpa = np.array([[0, 1], [2, 3]])
    palette = [(10, 20, 30), (40, 50, 60), (70, 80, 90), (100, 110, 120)]
    panel = label_panel(tpa, np.array(palette, dtype=np.uint8), panel_size(2, 2))
    assert [panel.getpixel(place) for place in ((0, 0), (479, 0), (0, 479), (479, 479))] == palette


def test_legend_names_the_classes_present_and_what_is_ignored():
    colors = np.arange(12).reshape(4, 3).astype(np.uint8)
    maps = [np.array([[0, 255]]), np.array([[3, 0]])]
    assert class_legend(maps, NAMES, colors) == [((0, 1, 2), 'wall'), ((9, 10, 11), 'sky'), (None, 'ignored')]
    assert class_legend(maps[1:], NAMES, colors) == [((0, 1, 2), 'wall'), ((9, 10, 11), 'sky')]


def test_difference_legend_gives_shares_of_the_labeled_pixels():
    codes = np.array([[Difference.CORRECTED] * 3 + [Difference.BROKEN] + [Difference.IGNORED] * 4])
    assert difference_legend(codes) == [
        (BLUE, 'corrected 75.0 %'),
        (ORANGE, 'broken 25.0 %'),
        (LIGHT_GRAY, 'both right 0.0 %'),
        (DARK_GRAY, 'both wrong 0.0 %'),
    ]
    assert difference_legend(np.full((2, 2), Difference.CHANGED)) == [
        (LIGHT_GRAY, 'unchanged 0.0 %'),
        (PINK, 'changed 100.0 %'),
    ]
