"""A painted world: every scene is a function of its seed, with the label of every pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from .arithmetic import COARSE, sample, soften
from .textures import GROUNDS, THINGS, colors, outline, pattern

CLASSES = GROUNDS + THINGS

# In the order of the classes; people with color blindness can tell them apart too.
PALETTE = (
    (0, 165, 120),
    (52, 120, 200),
    (195, 195, 165),
    (180, 15, 60),
    (105, 45, 0),
    (180, 210, 255),
    (40, 40, 40),
    (220, 30, 40),
    (165, 135, 225),
    (255, 105, 150),
    (110, 110, 120),
    (240, 180, 90),
    (250, 220, 40),
    (0, 195, 210),
)

IGNORED = 255

# Height and width; surfaces and things are larger on larger pictures.
SIZES = ((128, 160), (160, 128), (128, 128), (144, 192), (112, 144))


@dataclass(frozen=True)
class Scene:
    """A picture and what is on it.

    Attributes:
        image: (H, W, 3) uint8 RGB.
        labels: (H, W) uint8 index in :data:`CLASSES`, :data:`IGNORED` on the clutter.
        regions: (H, W) uint8 index of the single surface or thing, without regard to its class.
        unusual: (H, W) bool, where the surface or thing has unusual colors.
    """

    image: np.ndarray
    labels: np.ndarray
    regions: np.ndarray
    unusual: np.ndarray


class _Canvas:
    """A scene under the brush."""

    def __init__(self, size: tuple[int, int]) -> None:
        height, width = size
        self.image = np.zeros((height, width, 3), np.float32)
        self.labels = np.zeros(size, np.uint8)
        self.regions = np.zeros(size, np.uint8)
        self.unusual = np.zeros(size, bool)
        self.y, self.x = (axis.astype(np.float32) for axis in np.mgrid[:height, :width])
        self.scale = min(size) / 128
        self.painted = 0

    def fill(
        self,
        window: tuple[slice, slice],
        mask: np.ndarray,
        name: str,
        center: tuple[float, float],
        rng: Generator,
        unusual: bool,
        radius: float | None = None,
    ) -> None:
        """Paints one surface or thing where ``mask``, of the window's size, holds."""
        x = (self.x[window] - np.float32(center[0])) / np.float32(self.scale)
        y = (self.y[window] - np.float32(center[1])) / np.float32(self.scale)
        share = pattern(name, x, y, rng, radius)[mask].astype(np.float32)[:, None]
        first, second = colors(name, rng, unusual)
        pixels = first + share * (second - first)
        if radius is not None:  # light from the upper left
            pixels = pixels * (1.08 - 0.25 * np.clip((x * 0.6 + y * 0.8) / np.float32(radius), -1, 1))[mask][:, None]
        self.image[window][mask] = pixels
        self.labels[window][mask] = CLASSES.index(name)
        self.regions[window][mask] = self.painted
        self.unusual[window][mask] = unusual
        self.painted += 1


def paint(seed: int, unusual: float = 0.4, size: tuple[int, int] | None = None) -> Scene:
    """Paints the scene of a seed.

    Args:
        seed: Decides everything.
        unusual: Probability that a surface or thing has colors that its class seldom has.
        size: Height and width; one of :data:`SIZES` by the seed unless given.
    """
    rng = np.random.default_rng(seed)
    choice = SIZES[rng.integers(len(SIZES))]
    canvas = _Canvas(size or choice)
    _grounds(canvas, rng, unusual)
    for _ in range(rng.integers(2, 6)):
        _thing(canvas, rng, unusual)
    for _ in range(rng.poisson(1.5)):
        _clutter(canvas, rng)
    return Scene(_photograph(canvas, rng), canvas.labels, canvas.regions, canvas.unusual)


def _grounds(canvas: _Canvas, rng: Generator, unusual: float) -> None:
    """Two or three surfaces with wavy borders: each pixel belongs to the nearest of a few points."""
    height, width = canvas.labels.shape
    count = rng.integers(2, 4)
    names = rng.permutation(len(GROUNDS))[:count]
    points = rng.uniform(0, 1, (count, 2)) * (width, height)
    offset = rng.uniform(0, 256, 2)
    wave = (
        7
        * canvas.scale
        * sample(COARSE, canvas.x / (5 * canvas.scale) + offset[0], canvas.y / (5 * canvas.scale) + offset[1])
    )
    distances = [(canvas.x - px + wave) ** 2 + ((canvas.y - py - wave) * 1.4) ** 2 for px, py in points]
    nearest = np.argmin(distances, 0)
    everywhere = (slice(None), slice(None))
    for index, ground in enumerate(names):
        mask = nearest == index
        odd = bool(rng.random() < unusual)
        if mask.any():
            canvas.fill(everywhere, mask, GROUNDS[ground], (width / 2, height / 2), rng, odd)


def _thing(canvas: _Canvas, rng: Generator, unusual: float) -> None:
    height, width = canvas.labels.shape
    name = THINGS[rng.integers(len(THINGS))]
    radius = rng.uniform(17, 38)
    odd = bool(rng.random() < unusual)
    cx, cy = rng.uniform(0.04, 0.96) * width, rng.uniform(0.04, 0.96) * height
    reach = radius * canvas.scale * 1.2
    window = (
        slice(int(max(cy - reach, 0)), int(min(cy + reach + 1, height))),
        slice(int(max(cx - reach, 0)), int(min(cx + reach + 1, width))),
    )
    x = (canvas.x[window] - np.float32(cx)) / np.float32(radius * canvas.scale)
    y = (canvas.y[window] - np.float32(cy)) / np.float32(radius * canvas.scale)
    mask = outline(name, x, y, rng)
    shadow = np.zeros_like(mask)
    shadow[2:, 2:] = mask[:-2, :-2]
    canvas.image[window][shadow] *= np.float32(0.75)
    canvas.fill(window, mask, name, (cx, cy), rng, odd, radius)


def _clutter(canvas: _Canvas, rng: Generator) -> None:
    """A thin line over whatever is there. It has no class."""
    height, width = canvas.labels.shape
    (x0, y0), (x1, y1) = rng.uniform(0, 1, (2, 2)) * (width, height)
    dx, dy = np.float32((x1 - x0) * 0.35), np.float32((y1 - y0) * 0.35)
    x, y = canvas.x - np.float32(x0), canvas.y - np.float32(y0)
    along = np.clip((x * dx + y * dy) / np.float32(dx * dx + dy * dy + 1e-3), 0, 1)
    mask = (x - along * dx) ** 2 + (y - along * dy) ** 2 < np.float32(rng.uniform(0.4, 1.2))
    canvas.image[mask] = rng.random(3)
    canvas.labels[mask] = IGNORED


def _photograph(canvas: _Canvas, rng: Generator) -> np.ndarray:
    """Uneven light, a color cast, a tone curve, a little blur and noise."""
    height, width = canvas.labels.shape
    slope = rng.uniform(-0.35, 0.35, 2).astype(np.float32)
    light = 1 + slope[0] * (canvas.x / np.float32(width) - 0.5) + slope[1] * (canvas.y / np.float32(height) - 0.5)
    cast = (rng.uniform(0.8, 1.15) * rng.uniform(0.93, 1.07, 3)).astype(np.float32)
    image = np.clip(canvas.image * light[..., None] * cast, 0, 1)
    bend = np.float32(rng.uniform(-0.3, 0.4))
    image = image * (1 + bend) / (1 + bend * image)
    if rng.random() < 0.4:
        image = soften(image, rng.uniform(0.08, 0.22))
    grain = rng.uniform(0.01, 0.05) * rng.standard_normal(image.shape, np.float32)
    return (np.clip(image + grain.astype(np.float32), 0, 1) * 255 + 0.5).astype(np.uint8)
