"""Random views of scenes: where a camera that is near or far, turned or mirrored, looks at, and in which light."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Generator, Tensor


@dataclass
class Views:
    """A batch of square views.

    Attributes:
        matrix: (B, 2, 2) from the view's coordinates, -1 to 1, to pixels of the scene.
        center: (B, 2) the pixel (x, y) in the middle of the view.
    """

    matrix: Tensor
    center: Tensor

    @classmethod
    def draw(
        cls,
        count: int,
        rng: Generator,
        sides: tuple[float, float],
        turn: float,
        size: tuple[int, int],
        center: Tensor | None = None,
    ) -> Views:
        """Draws views at random.

        Args:
            count: B.
            rng: Where chance comes from.
            sides: Smallest and largest side of a view in pixels of the scene.
            turn: Largest angle of rotation to either side, in radians.
            size: Height and width of the scenes.
            center: (B, 2) given middles; anywhere inside the scene otherwise.
        """
        half = torch.empty(count).uniform_(*sides, generator=rng) / 2
        angle = torch.empty(count).uniform_(-turn, turn, generator=rng)
        mirror = torch.where(torch.rand(count, generator=rng) < 0.5, -1.0, 1.0)
        rows = [
            torch.stack([angle.cos() * mirror, -angle.sin()], -1),
            torch.stack([angle.sin() * mirror, angle.cos()], -1),
        ]
        matrix = torch.stack(rows, -2) * half[:, None, None]
        if center is None:
            room = torch.tensor([size[1], size[0]]) - 2 * half[:, None]
            center = half[:, None] + room.clamp_min(0) * torch.rand(count, 2, generator=rng)
        return cls(matrix, center)

    def pixels(self, points: Tensor) -> Tensor:
        """(B, n, 2) pixels of the scene at (B or 1, n, 2) points of the view."""
        return points @ self.matrix.transpose(1, 2) + self.center[:, None]

    def points(self, pixels: Tensor) -> Tensor:
        """(B, n, 2) points of the view at (B, n, 2) pixels of the scene: the inverse of :meth:`pixels`."""
        return (pixels - self.center[:, None]) @ torch.linalg.inv(self.matrix).transpose(1, 2)

    def take(self, scenes: Tensor, side: int, mode: str = 'bilinear') -> Tensor:
        """(B, c, side, side) pictures of (B, c, H, W) scenes."""
        height, width = scenes.shape[2:]
        pixels = self.pixels(grid_points(side))
        grid = pixels / torch.tensor([width, height]) * 2 - 1
        grid = grid.view(-1, side, side, 2)
        return F.grid_sample(scenes, grid, mode=mode, padding_mode='reflection', align_corners=False)


def grid_points(side: int) -> Tensor:
    """(1, side * side, 2) middles (x, y) of the cells of a square from -1 to 1."""
    middles = (torch.arange(side) + 0.5) / side * 2 - 1
    return torch.stack(torch.meshgrid(middles, middles, indexing='xy'), -1).view(1, -1, 2)


def turn_hue(images: Tensor, share: float, rng: Generator) -> Tensor:
    """Rotates the colors of a share of the (B, 3, H, W) images about the gray axis, by any angle."""
    count = len(images)
    angle = torch.empty(count).uniform_(-math.pi, math.pi, generator=rng) * (torch.rand(count, generator=rng) < share)
    k = 3**-0.5
    cross = torch.tensor([[0, -k, k], [k, 0, -k], [-k, k, 0]])
    cosine, sine = angle.cos()[:, None, None], angle.sin()[:, None, None]
    matrix = torch.eye(3) * cosine + cross * sine + (1 - cosine) / 3
    return (matrix @ images.flatten(2)).view_as(images)


def other_light(images: Tensor, rng: Generator) -> Tensor:
    """Other hue, saturation, contrast and brightness for each image, a negative of some, and noise."""

    def factor(low: float, high: float) -> Tensor:
        return torch.empty(len(images), 1, 1, 1).uniform_(low, high, generator=rng)

    gray = images.mean(1, keepdim=True)
    images = turn_hue(gray + (images - gray) * factor(0.4, 1.4), 0.6, rng)
    middle = images.mean((1, 2, 3), keepdim=True)
    images = (images - middle) * factor(0.6, 1.4) + middle * factor(0.7, 1.3)
    images = torch.where(factor(0, 1) < 0.08, 1 - images, images).clamp(0, 1)
    return (images + torch.randn(images.shape, generator=rng) * factor(0, 0.08)).clamp(0, 1)
