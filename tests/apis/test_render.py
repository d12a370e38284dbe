"""Figures of a run: a class has one color in all of them, and no color of the difference map."""

from __future__ import annotations

import numpy as np
from PIL import Image

from tests.helpers.tiny_segmenter import painted, tiny_config
from tpa_mmseg.apis import Segmenter
from tpa_mmseg.apis.render import video_comparison
from tpa_mmseg.visualization import DIFFERENCE_COLORS, Difference


def colors_of(picture: Image.Image) -> set[tuple[int, ...]]:
    return {color for _, color in picture.convert('RGB').getcolors(1 << 24)}


def test_a_class_has_one_color_in_all_figures_and_none_of_the_difference_map() -> None:
    config, changed = tiny_config(), tuple(DIFFERENCE_COLORS[Difference.CHANGED].tolist())
    meta = {'classes': ['cat', 'dog', 'tree'], 'palette': [list(changed), [10, 90, 20], [90, 20, 10]]}
    config.test_dataloader = {'dataset': {'type': 'BaseSegDataset', 'metainfo': meta}}
    segmenter = Segmenter(['cat', 'dog', 'tree'], config, k=1.1, progress=False)
    results = segmenter.segment([painted(seed) for seed in range(3)])
    palette = [tuple(color) for color in segmenter.palette]
    assert palette[0] != changed and palette[1:] == [(10, 90, 20), (90, 20, 10)]
    assert any(result.changed_fraction for result in results)
    for result in results:
        present = {palette[label] for label in np.unique([result.labels, result.host_labels])}
        assert colors_of(result.label_image()) == {palette[label] for label in np.unique(result.labels)}
        for figure in (result.comparison(), video_comparison(result)):
            assert present | {changed} <= colors_of(figure)  # the legend has it in any case
        anchors = np.unique(segmenter.anchors(result.image))
        figure = colors_of(segmenter.anchor_figure(result.image))
        assert {palette[label] for label in anchors if label >= 0} <= figure and changed not in figure
