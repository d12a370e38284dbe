from __future__ import annotations

import numpy as np
import torch
from PIL import Image

from tpa_mmseg.core import AnchorRule, ClassProbabilities, anchor_map
from tpa_mmseg.visualization import anchor_figure, draw_anchors

COLORS = np.array([(200, 0, 0), (0, 0, 200)], dtype=np.uint8)


def test_anchors_are_painted_and_the_rest_is_left():
    background = Image.new('RGB', (3, 1), (50, 50, 50))
    painted = draw_anchors(background, np.array([[0, -1, 1]]), COLORS)
    assert [painted.getpixel((x, 0)) for x in range(3)] == [(200, 0, 0), (50, 50, 50), (0, 0, 200)]
    assert background.getpixel((0, 0)) == (50, 50, 50)


def test_lone_anchor_survives_a_strong_reduction():
    anchors = np.full((1000, 1500), -1)
    anchors[777, 333] = 1
    painted = draw_anchors(Image.new('RGB', (150, 100)), anchors, COLORS)
    assert painted.getpixel((33, 77)) == (0, 0, 200)
    assert sum(count for count, color in painted.getcolors() if color == (0, 0, 200)) == 1


def test_anchor_map_of_the_core_becomes_a_picture_with_its_classes():
    probabilities = torch.tensor([[[0.95, 0.5], [0.1, 0.5]], [[0.05, 0.5], [0.9999, 0.5]]])
    probabilities[:, 1, 0] = torch.tensor([0.02, 0.98])
    anchors = anchor_map(ClassProbabilities(probabilities, (2, 2)), AnchorRule(k=1.8)).numpy()
    assert anchors.tolist() == [[0, -1], [1, -1]]
    picture = anchor_figure(anchors, ['one', 'two'], Image.new('RGB', (2, 2)), COLORS)
    colors = {color for _, color in picture.getcolors(1 << 24)}
    assert {(200, 0, 0), (0, 0, 200)} <= colors
    assert picture.width > 2 * 480


def test_image_without_anchors_can_be_drawn():
    picture = anchor_figure(np.full((10, 10), -1), ['one', 'two'], None, COLORS)
    assert not {(200, 0, 0), (0, 0, 200)} & {color for _, color in picture.getcolors(1 << 24)}
