"""Painted scenes with labels: grounds with textures and things on them, by day or in the light of dusk."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

CLASSES = ('sky', 'meadow', 'lake', 'sand', 'brick', 'tree', 'sun', 'boat')
PALETTE = (
    (135, 190, 250),
    (110, 200, 80),
    (30, 90, 200),
    (235, 205, 130),
    (190, 70, 50),
    (20, 110, 50),
    (255, 220, 0),
    (150, 60, 180),
)
IGNORED = 255
# Paint (RGB) and strength of texture of each class by day.
_PAINT = np.array(
    [
        (140, 190, 240),
        (120, 190, 80),
        (50, 100, 180),
        (225, 200, 140),
        (180, 90, 70),
        (40, 110, 60),
        (250, 225, 90),
        (160, 80, 170),
    ],
    np.float32,
)
_GRAIN = np.array((4, 16, 8, 10, 14, 20, 4, 6), np.float32)


def paint_scene(seed: int, size: tuple[int, int] = (96, 128), dusk: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """One scene, a function of its arguments.

    Args:
        seed: Which scene.
        size: Height and width.
        dusk: 0 is the light of day; 1 is dim and red, which a segmentor trained by day has never seen.

    Returns:
        (H, W, 3) uint8 RGB picture and (H, W) uint8 labels with 255 on outlines.
    """
    rng = np.random.default_rng(seed)
    height, width = size
    labels = _grounds(rng, height, width)
    for _ in range(rng.integers(2, 5)):
        _add_thing(rng, labels)
    paint = _PAINT + rng.normal(0, 12, _PAINT.shape)
    grain = cv2.resize(rng.normal(0, 1, (height // 2 + 1, width // 2 + 1)).astype(np.float32), (width, height))
    image = paint[labels] + (_GRAIN[labels] * grain)[..., None]
    bricks = (np.arange(height)[:, None] % 8 == 0) | (
        (np.arange(width)[None] + 6 * (np.arange(height)[:, None] // 8)) % 14 == 0
    )
    image[(labels == 4) & bricks] -= 45
    image = _light(rng, image, dusk)
    outline = cv2.morphologyEx(labels, cv2.MORPH_GRADIENT, np.ones((2, 2), np.uint8)) > 0
    truth = np.where(outline, np.uint8(IGNORED), labels)
    return image.clip(0, 255).astype(np.uint8), truth


def _grounds(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Sky above two grounds with wavy borders."""
    labels = np.zeros((height, width), np.uint8)
    columns = np.arange(width) / width
    horizon = 0.3 + 0.2 * rng.random()
    grounds = rng.permutation([1, 2, 3, 4])[:2]
    for level, ground in zip((horizon, horizon + 0.3), grounds, strict=True):
        wave = level + 0.06 * np.sin(2 * np.pi * (columns * rng.uniform(0.5, 2) + rng.random()))
        labels[np.arange(height)[:, None] / height > wave[None]] = ground
    return labels


def _add_thing(rng: np.random.Generator, labels: np.ndarray) -> None:
    """Paints a tree, a sun, a boat or a brick house into the labels."""
    height, width = labels.shape
    unit = min(height, width)
    x, y = int(rng.integers(width)), int(rng.integers(height // 4, height))
    thing = rng.choice(['tree', 'sun', 'boat', 'house'])
    radius = int(unit * rng.uniform(0.08, 0.18)) + 1
    if thing == 'tree':
        cv2.circle(labels, (x, y), radius, 5, -1)
        cv2.rectangle(labels, (x - radius // 5, y), (x + radius // 5, y + 2 * radius), 5, -1)
    elif thing == 'sun':
        cv2.circle(labels, (x, int(height * 0.15)), radius, 6, -1)
    elif thing == 'boat':
        hull = np.array([(x - 2 * radius, y), (x + 2 * radius, y), (x + radius, y + radius), (x - radius, y + radius)])
        sail = np.array([(x, y), (x, y - 2 * radius), (x + radius, y)])
        cv2.fillPoly(labels, [hull, sail], 7)
    else:
        cv2.rectangle(labels, (x - radius, y - radius), (x + radius, y + radius), 4, -1)


def _light(rng: np.random.Generator, image: np.ndarray, dusk: float) -> np.ndarray:
    """Day, or the dim and reddish light of dusk with its noise."""
    cast = 1 - dusk * np.array((0.15, 0.40, 0.38)) * rng.uniform(0.8, 1.2)
    return image * cast + rng.normal(0, 3 + 7 * dusk, image.shape)


def write_scenes(
    folder: Path, count: int, first_seed: int, dusk: float = 0.0, size: tuple[int, int] = (96, 128)
) -> None:
    """Writes scenes in MMSegmentation's layout: ``images/*.png`` and ``labels/*.png``."""
    for part in ('images', 'labels'):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for number in range(count):
        image, labels = paint_scene(first_seed + number, size, dusk)
        name = f'{number:04d}.png'
        cv2.imwrite(str(folder / 'images' / name), image[..., ::-1])
        cv2.imwrite(str(folder / 'labels' / name), labels)
