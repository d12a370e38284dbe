"""Pictures of scenes, and of what hosts and TPA make of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

from tpa_mmseg.miniature.world import CLASSES, PALETTE, Scene
from tpa_mmseg.visualization import (
    DIFFERENCE_COLORS,
    Legend,
    LegendEntry,
    Panel,
    class_palette,
    compose,
    difference_map,
)
from tpa_mmseg.visualization.panels import class_legend, difference_legend, fit_image, label_panel

# A pixel of a scene becomes a square of so many.
_SCALE = 2
_COLORS = class_palette(len(CLASSES), PALETTE)


def comparison_grid(rows: Sequence[tuple[str, Scene, np.ndarray, np.ndarray]]) -> Image.Image:
    """Input, truth, host, TPA and difference of a scene in each row, with legends of the colors below.

    Args:
        rows: Name of the host, a scene, (H, W) labels of the host alone and with TPA; scenes of one size.
    """
    panels, codes = [], []
    for name, scene, host, tpa in rows:
        size = _size(scene)
        codes.append(difference_map(host, tpa, scene.labels))
        panels += [
            Panel('Input', fit_image(Image.fromarray(scene.image), size)),
            Panel('Ground truth', label_panel(scene.labels, _COLORS, size)),
            Panel(name, label_panel(host, _COLORS, size)),
            Panel(f'{name} + TPA', label_panel(tpa, _COLORS, size)),
            Panel('Difference', label_panel(codes[-1], DIFFERENCE_COLORS, size)),
        ]
    maps = [labels for _, scene, *found in rows for labels in (scene.labels, *found)]
    legends = [
        Legend('Classes', class_legend(maps, CLASSES, _COLORS)),
        Legend('Difference', difference_legend(np.concatenate([code.ravel() for code in codes]))),
    ]
    return compose(panels, legends, columns=5)


def scene_grid(scenes: Sequence[Scene], columns: int = 4) -> Image.Image:
    """Scenes of one size with their labels beside them, and a legend of the colors below."""
    panels = []
    for scene in scenes:
        panels.append(Panel('Scene', fit_image(Image.fromarray(scene.image), _size(scene))))
        panels.append(Panel('Labels', label_panel(scene.labels, _COLORS, _size(scene))))
    entries = [
        LegendEntry(tuple(int(value) for value in color), name) for color, name in zip(_COLORS, CLASSES, strict=True)
    ]
    return compose(panels, [Legend('Classes', [*entries, LegendEntry(None, 'ignored')])], columns=columns)


def _size(scene: Scene) -> tuple[int, int]:
    height, width = scene.labels.shape
    return _SCALE * height, _SCALE * width
