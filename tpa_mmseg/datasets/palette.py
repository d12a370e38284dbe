"""Colors of classes: the dataset's palette, or distinct colors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

WHITE = (255, 255, 255)

_RGB_TO_CONE = np.array(
    [[0.4122214708, 0.5363325363, 0.0514459929],
     [0.2119034982, 0.6806995451, 0.1073969566],
     [0.0883024619, 0.2817188376, 0.6299787005]]
)  # fmt: skip
_CONE_TO_OKLAB = np.array(
    [[0.2104542553, 0.7936177850, -0.0040720468],
     [1.9779984951, -2.4285922050, 0.4505937099],
     [0.0259040371, 0.7827717662, -0.8086757660]]
)  # fmt: skip


def class_palette(num_classes: int, palette: Sequence[Sequence[int]] | None = None) -> np.ndarray:
    """Returns (C, 3) uint8 RGB: the palette if it has a color for every class, otherwise distinct colors."""
    if palette is not None and len(palette) == num_classes:
        return np.asarray(palette, dtype=np.uint8).reshape(num_classes, 3)
    return distinct_colors(num_classes)


@lru_cache(maxsize=16)
def distinct_colors(count: int) -> np.ndarray:
    """Returns (count, 3) uint8 RGB, each as far as possible from those before it, always the same ones.

    Distance is measured in OKLab, in which equal distances look equal. Near-grays, white and black are excluded: they
    mark right, wrong and ignored pixels.
    """
    steps = max(12, 2 * round(count ** (1 / 3)) + 2)
    levels = np.linspace(0, 255, steps).round().astype(np.uint8)
    candidates = np.stack(np.meshgrid(levels, levels, levels, indexing='ij'), -1).reshape(-1, 3)
    lab = oklab(candidates)
    lightness, chroma = lab[:, 0], np.hypot(lab[:, 1], lab[:, 2])
    usable = (lightness > 0.3) & (lightness < 0.93) & (chroma > 0.06)
    candidates, lab = candidates[usable], lab[usable]
    chosen = [int(lab[:, 2].argmin())]
    distance = np.full(len(lab), np.inf)
    while len(chosen) < count:
        distance = np.minimum(distance, np.linalg.norm(lab - lab[chosen[-1]], axis=1))
        chosen.append(int(distance.argmax()))
    colors = candidates[chosen[:count]]
    colors.setflags(write=False)
    return colors


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Converts sRGB to OKLab. Args: rgb: (n, 3) uint8. Returns: (n, 3) lightness, green-red, blue-yellow."""
    unit = np.asarray(rgb, dtype=np.float64) / 255
    linear = np.where(unit <= 0.04045, unit / 12.92, ((unit + 0.055) / 1.055) ** 2.4)
    return np.cbrt(linear @ _RGB_TO_CONE.T) @ _CONE_TO_OKLAB.T
