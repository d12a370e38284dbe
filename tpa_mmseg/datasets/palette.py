"""Colors of classes and of the difference map. No class has a color of the difference map."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

WHITE = (255, 255, 255)
#: The class of everything else: between the grays of the difference map.
BACKGROUND_COLOR = (150, 150, 150)
#: (6, 3): both right, both wrong, corrected, broken, unchanged, changed. They differ for every eye in :data:`_EYES`.
DIFFERENCE_COLORS = np.array(
    [(235, 235, 235), (80, 80, 80), (0, 150, 255), (230, 135, 30), (235, 235, 235), (225, 75, 255)], dtype=np.uint8
)

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
# Linear RGB as it looks without color blindness, with protanopia, deuteranopia and tritanopia (Machado et al. 2009).
_EYES = np.array(
    [[[1, 0, 0], [0, 1, 0], [0, 0, 1]],
     [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
     [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
     [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]]
)  # fmt: skip
# Number of generated colors that all eyes can tell apart. Later ones are chosen for people without color blindness.
_FOR_ALL_EYES = 12
# Least distance in OKLab: of a class from the difference map, and of two classes of which one had to be moved.
_APART, _MOVED_APART = 0.08, 0.03


def class_palette(num_classes: int, palette: Sequence[Sequence[int]] | None = None) -> np.ndarray:
    """Returns (C, 3) uint8 RGB: the palette if it has a color for every class, otherwise distinct colors.

    Colors of the palette that look like those of the difference map are replaced by the nearest that do not.
    """
    if palette is None or len(palette) != num_classes:
        return distinct_colors(num_classes)
    return _apart(tuple(tuple(int(value) for value in color) for color in palette))


@lru_cache(maxsize=16)
def distinct_colors(count: int) -> np.ndarray:
    """Returns (count, 3) uint8 RGB, each as far as possible from those before it, always the same ones.

    Distance is measured in OKLab, in which equal distances look equal; that of the first dozen is the least of what
    people with and without color blindness see. Near-grays, white, black and the colors of the difference map are left
    out.
    """
    candidates = _grid(max(12, 2 * round(count ** (1 / 3)) + 2))
    seen = _seen(candidates)
    lightness, chroma = seen[:, 0, 0], np.hypot(seen[:, 0, 1], seen[:, 0, 2])
    usable = (lightness > 0.3) & (lightness < 0.93) & (chroma > 0.06) & (_from_difference(candidates) > 0.1)
    candidates, seen = candidates[usable], seen[usable]
    chosen = [int(seen[:, 0, 2].argmin())]
    distance = np.full(seen.shape[:2], np.inf)
    while len(chosen) < count:
        distance = np.minimum(distance, np.linalg.norm(seen - seen[chosen[-1]], axis=-1))
        chosen.append(int((distance.min(1) if len(chosen) < _FOR_ALL_EYES else distance[:, 0]).argmax()))
    colors = candidates[chosen[:count]]
    colors.setflags(write=False)
    return colors


@lru_cache(maxsize=16)
def _apart(palette: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """Returns a palette whose colors differ from those of the difference map."""
    colors = np.array(palette, dtype=np.uint8).reshape(-1, 3)
    free = _grid(18)
    free = free[_from_difference(free) > _APART]
    for index in np.flatnonzero(_from_difference(colors) <= _APART):
        others = oklab(np.delete(colors, index, axis=0))
        crowded = np.linalg.norm(oklab(free)[:, None] - others, axis=-1).min(1, initial=np.inf) < _MOVED_APART
        distance = np.linalg.norm(oklab(free) - oklab(colors[index]), axis=-1)
        colors[index] = free[(distance + crowded).argmin()]
    colors.setflags(write=False)
    return colors


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Converts sRGB to OKLab. Args: rgb: (n, 3) uint8. Returns: (n, 3) lightness, green-red, blue-yellow."""
    return _seen(rgb)[:, 0]


def _seen(rgb: np.ndarray) -> np.ndarray:
    """Returns the (n, 4, 3) OKLab colors that each of :data:`_EYES` sees."""
    unit = np.asarray(rgb, dtype=np.float64).reshape(-1, 3) / 255
    linear = np.where(unit <= 0.04045, unit / 12.92, ((unit + 0.055) / 1.055) ** 2.4)
    looks = np.einsum('eij,nj->nei', _EYES, linear).clip(0, 1)
    return np.cbrt(looks @ _RGB_TO_CONE.T) @ _CONE_TO_OKLAB.T


def _from_difference(rgb: np.ndarray) -> np.ndarray:
    """Returns the (n,) distance of colors from the nearest one of the difference map."""
    return np.linalg.norm(oklab(rgb)[:, None] - oklab(DIFFERENCE_COLORS), axis=-1).min(1)


@lru_cache(maxsize=4)
def _grid(steps: int) -> np.ndarray:
    """Returns (steps^3, 3) uint8 RGB, evenly spread."""
    levels = np.linspace(0, 255, steps).round().astype(np.uint8)
    return np.stack(np.meshgrid(levels, levels, levels, indexing='ij'), -1).reshape(-1, 3)
