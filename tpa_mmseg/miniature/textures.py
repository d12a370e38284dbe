"""How each class looks: a pattern between two colors, the colors, and the outline of a thing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from .arithmetic import COARSE, FINE, angle, ramp, rotation, sample, sine

GROUNDS = ('grass', 'water', 'sand', 'brick', 'wood', 'cloud')
THINGS = ('zebra', 'ladybug', 'chessboard', 'flower', 'wheel', 'target', 'star', 'net')

# The two colors of a class as it usually looks: hue, saturation and value, each from 0 to 1.
COLORS = {
    'grass': ((0.30, 0.75, 0.55), (0.24, 0.60, 0.25)),
    'water': ((0.58, 0.70, 0.75), (0.60, 0.80, 0.40)),
    'sand': ((0.12, 0.40, 0.88), (0.10, 0.50, 0.62)),
    'brick': ((0.03, 0.65, 0.60), (0.08, 0.10, 0.80)),
    'wood': ((0.08, 0.60, 0.55), (0.07, 0.75, 0.28)),
    'cloud': ((0.58, 0.45, 0.85), (0.58, 0.03, 0.98)),
    'zebra': ((0.00, 0.02, 0.96), (0.00, 0.05, 0.08)),
    'ladybug': ((0.00, 0.85, 0.85), (0.00, 0.10, 0.06)),
    'chessboard': ((0.12, 0.25, 0.95), (0.07, 0.60, 0.25)),
    'flower': ((0.90, 0.55, 0.95), (0.14, 0.85, 0.95)),
    'wheel': ((0.00, 0.00, 0.15), (0.00, 0.00, 0.70)),
    'target': ((0.99, 0.80, 0.85), (0.00, 0.00, 0.97)),
    'star': ((0.14, 0.85, 0.97), (0.11, 0.90, 0.80)),
    'net': ((0.45, 0.60, 0.30), (0.47, 0.35, 0.85)),
}


def _grass(u: np.ndarray, v: np.ndarray, o: np.ndarray) -> np.ndarray:
    return ramp(sample(FINE, u * 0.55 + o[0], v * 0.09 + o[1]), 3)


def _water(u: np.ndarray, v: np.ndarray, o: np.ndarray) -> np.ndarray:
    bend = 0.27 * sine(u / 17 + o[0]) + 0.13 * sample(COARSE, u * 0.4 + o[1], v * 0.4 + o[2])
    return 0.5 + 0.5 * sine(v / 8 + bend)


def _sand(u: np.ndarray, v: np.ndarray, o: np.ndarray) -> np.ndarray:
    grain = sample(FINE, u * 0.9 + o[0], v * 0.9 + o[1])
    return ramp(grain + 0.2 * sample(COARSE, u * 0.5 + o[2], v * 0.5 + o[3]), 3.5)


def _brick(u: np.ndarray, v: np.ndarray, o: np.ndarray) -> np.ndarray:
    row = np.floor(v / 7)
    across, down = (u / 15 + 0.5 * row) % 1, (v / 7) % 1
    return ((across < 0.13) | (down < 0.24)).astype(np.float32)


def _wood(u: np.ndarray, v: np.ndarray, o: np.ndarray) -> np.ndarray:
    return (1.6 * sample(COARSE, u * 0.10 + o[0], v * 0.7 + o[1]) + 0.02 * v) % 1


def _cloud(u: np.ndarray, v: np.ndarray, o: np.ndarray) -> np.ndarray:
    return ramp(sample(COARSE, u * 0.22 + o[0], v * 0.30 + o[1]), 2)


def _zebra(u: np.ndarray, v: np.ndarray, o: np.ndarray) -> np.ndarray:
    return ramp(sine(v / 9 + 0.16 * sample(COARSE, u * 0.3 + o[0], v * 0.3 + o[1])), 0.4)


def _ladybug(u: np.ndarray, v: np.ndarray, o: np.ndarray) -> np.ndarray:
    row = np.floor(v / 9.5)
    across, down = (u / 11 + 0.5 * row) % 1 - 0.5, (v / 9.5) % 1 - 0.5
    return (across * across * 121 + down * down * 90 < 9.5).astype(np.float32)


def _chessboard(u: np.ndarray, v: np.ndarray, o: np.ndarray) -> np.ndarray:
    return ((np.floor(u / 7) + np.floor(v / 7)) % 2).astype(np.float32)


def _net(u: np.ndarray, v: np.ndarray, o: np.ndarray) -> np.ndarray:
    return (((u / 8) % 1 < 0.22) | ((v / 8) % 1 < 0.22)).astype(np.float32)


_PLANE: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    'grass': _grass,
    'water': _water,
    'sand': _sand,
    'brick': _brick,
    'wood': _wood,
    'cloud': _cloud,
    'zebra': _zebra,
    'ladybug': _ladybug,
    'chessboard': _chessboard,
    'net': _net,
}


def pattern(name: str, x: np.ndarray, y: np.ndarray, rng: Generator, radius: float | None = None) -> np.ndarray:
    """(H, W) share of a class's second color, from 0 to 1.

    Args:
        name: The class.
        x: (H, W) horizontal distance to the middle of the surface or thing.
        y: (H, W) the same, downwards.
        rng: Decides size, direction and position of the pattern.
        radius: Of a thing; None for a ground.
    """
    scale = rng.uniform(0.75, 1.35)
    cosine, sinus = rotation(rng.uniform(-0.06, 0.06) if radius is None else rng.random())
    u, v = (cosine * x + sinus * y) / np.float32(scale), (cosine * y - sinus * x) / np.float32(scale)
    if name in _PLANE:
        return _PLANE[name](u, v, rng.uniform(0, 200, 4))
    return _RADIAL[name](u * np.float32(scale / radius), v * np.float32(scale / radius), radius / scale, rng)


def _flower(u: np.ndarray, v: np.ndarray, radius: float, rng: Generator) -> np.ndarray:
    petals = sine(angle(u, v) * rng.integers(5, 9) + 0.25) < -0.6
    return np.clip((_distance(u, v) < 0.33) + np.float32(0.35) * petals, 0, 1)


def _wheel(u: np.ndarray, v: np.ndarray, radius: float, rng: Generator) -> np.ndarray:
    distance = _distance(u, v)
    across = np.abs((angle(u, v) * rng.integers(5, 9)) % 1 - 0.5)
    spokes = (across < 0.096 / np.maximum(distance, np.float32(0.2))) & (distance < 0.78)
    return (spokes | (distance < 0.2)).astype(np.float32)


def _target(u: np.ndarray, v: np.ndarray, radius: float, rng: Generator) -> np.ndarray:
    return ramp(sine(_distance(u, v) * np.float32(radius / 10) + 0.25), 0.4)


def _star(u: np.ndarray, v: np.ndarray, radius: float, rng: Generator) -> np.ndarray:
    return np.clip(0.5 + 0.5 * u, 0, 1)


_RADIAL = {'flower': _flower, 'wheel': _wheel, 'target': _target, 'star': _star}


def outline(name: str, x: np.ndarray, y: np.ndarray, rng: Generator) -> np.ndarray:
    """(H, W) bool, which pixels a thing covers; ``x`` and ``y`` in units of its radius."""
    turn = rng.random()
    if name in ('wheel', 'target'):
        return _distance(x, y) < 1
    if name == 'star':
        point = 1 - np.abs(((angle(x, y) + turn) * 5) % 1 - 0.5) * 2
        return _distance(x, y) < 0.48 + 0.5 * point
    if name == 'flower':
        return _distance(x, y) < 0.72 + 0.26 * sine((angle(x, y) + turn) * rng.integers(5, 8))
    cosine, sinus = rotation(turn)
    u, v = cosine * x + sinus * y, cosine * y - sinus * x
    if name == 'chessboard':
        return np.maximum(np.abs(u), np.abs(v)) < 0.82
    if name == 'net':
        return np.abs(u) + np.abs(v) * 0.8 < 1
    bulge = 1 + 0.12 * sine(3 * angle(x, y) + turn) if name == 'zebra' else 1
    return _distance(u, v / np.float32(rng.uniform(0.7, 1))) < bulge


def _distance(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.sqrt(u * u + v * v)


def colors(name: str, rng: Generator, unusual: bool) -> tuple[np.ndarray, np.ndarray]:
    """The two RGB colors of a surface. An unusual one has other hues, paler or stronger; some swap the two."""
    first, second = (np.array(color) for color in COLORS[name])
    if unusual:
        turn = rng.uniform(0.15, 0.85)
        fade = rng.uniform(0.5, 1.1)
        for color, hue in ((first, turn), (second, turn + rng.normal(0, 0.05))):
            color[0] += hue
            color[1] = min(max(color[1], 0.15), 0.9) * fade
        if rng.random() < 0.3:
            first, second = second, first
    spread = np.array([0.015, 0.06, 0.06])
    return _rgb(first + rng.normal(0, 1, 3) * spread), _rgb(second + rng.normal(0, 1, 3) * spread)


def _rgb(color: np.ndarray) -> np.ndarray:
    """RGB of a color given by hue, saturation and value."""
    hue, saturation, value = float(color[0]) % 1 * 6, *np.clip(color[1:], 0, 1)
    distance = np.abs((hue - np.array([0.0, 2.0, 4.0]) + 3) % 6 - 3)
    return (value * (1 - saturation * np.clip(distance - 1, 0, 1))).astype(np.float32)
