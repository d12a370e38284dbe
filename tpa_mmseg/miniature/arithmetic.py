"""The few functions that paintings are made of, in arithmetic that gives the same bits on every machine.

Sines, exponentials and blurs of the usual libraries differ in the last bit from one processor to the next. Here are
only sums, products, quotients and square roots, which IEEE 754 fixes, integers, and tables.
"""

from __future__ import annotations

import math

import numpy as np

_TURN = 4096

# Rounded, so that the last bit of a libm does not matter.
_SINE = np.array([round(math.sin(2 * math.pi * i / _TURN) * 2**20) / 2**20 for i in range(_TURN)], np.float32)

_TILE = 256


def sine(turns: np.ndarray | float) -> np.ndarray:
    """The sine of an angle in turns."""
    return _SINE[np.asarray(np.floor(np.asarray(turns, np.float64) * _TURN + 0.5), np.int64) % _TURN]


def rotation(turns: float) -> tuple[float, float]:
    """Cosine and sine of an angle in turns."""
    return float(sine(turns + 0.25)), float(sine(turns))


def angle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The direction of (x, y) in turns, from 0 to 1, to about 1e-5."""
    ax, ay = np.abs(x), np.abs(y)
    ratio = np.minimum(ax, ay) / np.maximum(np.maximum(ax, ay), np.float32(1e-6))
    square = ratio * ratio
    # The arcus tangens on [0, 1] as an odd polynomial, in turns.
    eighth = ratio * (
        0.1591496 + square * (-0.0529430 + square * (0.0309810 + square * (-0.0174990 + square * 0.0053128)))
    )
    quarter = np.where(ay > ax, np.float32(0.25) - eighth, eighth)
    half = np.where(x < 0, np.float32(0.5) - quarter, quarter)
    return np.where(y < 0, np.float32(1) - half, half).astype(np.float32)


def ramp(values: np.ndarray, width: float) -> np.ndarray:
    """0 below -width / 2, 1 above width / 2, straight between."""
    return np.clip(values / np.float32(width) + np.float32(0.5), 0, 1)


def _noise_tile(seed: int, radius: int) -> np.ndarray:
    """A (256, 256) periodic noise of mean about 0 and deviation about 1, smooth over about ``radius`` pixels.

    White integers, summed three times over squares: exact, whatever the order of the sums.
    """
    noise = np.random.default_rng(seed).integers(-1000, 1001, (_TILE, _TILE))
    for _ in range(3):
        for axis in (0, 1):
            noise = sum(np.roll(noise, shift, axis) for shift in range(-radius, radius + 1))
    deviation = math.isqrt(int((noise * noise).sum()) // noise.size)
    return (noise / deviation).astype(np.float32)


FINE, COARSE = (_noise_tile(seed, radius) for seed, radius in ((8, 1), (9, 4)))


def sample(tile: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The noise at real coordinates, between the four neighbors."""
    left, top = np.floor(u), np.floor(v)
    a, b = (u - left).astype(np.float32), (v - top).astype(np.float32)
    x, y = left.astype(np.int64) % _TILE, top.astype(np.int64) % _TILE
    right, bottom = (x + 1) % _TILE, (y + 1) % _TILE
    upper = tile[y, x] + a * (tile[y, right] - tile[y, x])
    lower = tile[bottom, x] + a * (tile[bottom, right] - tile[bottom, x])
    return upper + b * (lower - upper)


def soften(image: np.ndarray, share: float) -> np.ndarray:
    """A little blur: every pixel gives ``share`` of itself to each of its two neighbors, along both axes."""
    for axis in (0, 1):
        before, after = np.roll(image, 1, axis), np.roll(image, -1, axis)
        edge = [slice(None)] * image.ndim
        edge[axis] = 0
        before[tuple(edge)] = image[tuple(edge)]
        edge[axis] = -1
        after[tuple(edge)] = image[tuple(edge)]
        image = image * np.float32(1 - 2 * share) + (before + after) * np.float32(share)
    return image
