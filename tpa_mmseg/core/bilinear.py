"""The algebra of bilinear resizing: a band of it, its adjoint, and the norm of a resized feature.

Resizing is linear, so no feature map ever has to exist at full size. ``F.interpolate(mode='bilinear')`` is the
definition; everything here computes the same numbers in bands of rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

# Below this source width a small dense matrix resizes columns faster than F.interpolate on a CPU (measured).
_MATRIX_WIDTH = 96


class Taps(NamedTuple):
    """Which two source positions a target position mixes, along one axis of ``n`` target positions."""

    low: Tensor  #: (n,) index of the first source position
    high: Tensor  #: (n,) index of the second
    weight: Tensor  #: (n,) float32 weight of the second; the first has ``1 - weight``


@lru_cache(maxsize=256)
def axis_taps(source: int, target: int, align_corners: bool = False, device: str = 'cpu') -> Taps:
    """The taps that resize an axis from ``source`` to ``target`` positions, with PyTorch's own float32 rounding."""
    position = torch.arange(target, dtype=torch.float32)
    if align_corners:
        position = position * torch.tensor((source - 1) / (target - 1) if target > 1 else 0.0)
    else:
        scale = torch.tensor(source, dtype=torch.float32) / target
        position = ((position + 0.5) * scale - 0.5).clamp_(min=0)
    low = position.long().clamp_(max=source - 1)
    high = (low + 1).clamp_(max=source - 1)
    weight = (position - low).clamp_(0, 1)
    return Taps(low.to(device), high.to(device), weight.to(device))


@lru_cache(maxsize=64)
def _column_matrix(source: int, target: int, align_corners: bool) -> Tensor:
    """(source, target) matrix whose product with a row resizes it."""
    taps = axis_taps(source, target, align_corners)
    matrix = torch.zeros(source, target)
    column = torch.arange(target)
    matrix[taps.low, column] += 1 - taps.weight
    matrix[taps.high, column] += taps.weight
    return matrix


class RowSource(Protocol):
    """A (C, H, W) map that can be asked for any band of its rows."""

    @property
    def shape(self) -> tuple[int, int, int]: ...

    @property
    def device(self) -> torch.device: ...

    def rows(self, top: int, bottom: int) -> Tensor:
        """Rows ``top`` to ``bottom`` as float32 (C, bottom - top, W); the caller may not write to them."""


class Grid:
    """A map that is in memory, of any float type. Args: values (C, h, w)."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    @property
    def shape(self) -> tuple[int, int, int]:
        return tuple(self.values.shape)

    @property
    def device(self) -> torch.device:
        return self.values.device

    def rows(self, top: int, bottom: int) -> Tensor:
        return self.values[:, top:bottom].float()


class Resized:
    """Another map seen through a bilinear resize, which is carried out only for the rows asked for.

    Resizes can be chained, as hosts do that go from patches to the network's input and on to the original image.

    Args:
        source: The map to resize, a (C, h, w) tensor or any other :class:`RowSource`.
        size: Target height and width.
        align_corners: As in ``F.interpolate``.
    """

    def __init__(self, source: Tensor | RowSource, size: tuple[int, int], align_corners: bool = False) -> None:
        self.source = Grid(source) if isinstance(source, Tensor) else source
        self.size = (int(size[0]), int(size[1]))
        self.align_corners = align_corners
        # A matrix product spreads a NaN or an infinity over its whole row, F.interpolate over its neighbours only.
        self._by_matrix = (
            isinstance(self.source, Grid)
            and self.device.type == 'cpu'
            and self.source.shape[2] <= _MATRIX_WIDTH
            and bool(torch.isfinite(self.source.values).all())
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self.source.shape[0], *self.size)

    @property
    def device(self) -> torch.device:
        return self.source.device

    def rows(self, top: int, bottom: int) -> Tensor:
        channels, height, width = self.source.shape
        if self.size == (height, width):
            return self.source.rows(top, bottom)
        taps = axis_taps(height, self.size[0], self.align_corners, str(self.device))
        low, high, weight = taps.low[top:bottom], taps.high[top:bottom], taps.weight[top:bottom]
        first, last = _source_range(height, self.size[0], self.align_corners, top, bottom)
        block = self.source.rows(first, last)
        rows = torch.lerp(block[:, low - first], block[:, high - first], weight[:, None])
        if self.size[1] == width:
            return rows
        if self._by_matrix:
            matrix = _column_matrix(width, self.size[1], self.align_corners)
            return (rows.reshape(-1, width) @ matrix).view(channels, bottom - top, self.size[1])
        size = (bottom - top, self.size[1])
        return F.interpolate(rows[None], size, mode='bilinear', align_corners=self.align_corners)[0]


def _source_range(source: int, target: int, align_corners: bool, top: int, bottom: int) -> tuple[int, int]:
    """The source rows, first to last + 1, that target rows ``top`` to ``bottom`` need."""
    taps = axis_taps(source, target, align_corners)
    return int(taps.low[top]), int(taps.high[bottom - 1]) + 1


def spread_(weights: Tensor, labels: Tensor, top: int, size: tuple[int, int], values: Tensor | None = None) -> None:
    """The adjoint of bilinear upsampling for labelled pixels: adds each pixel's weight to its four patches.

    For every class c, ``weights[c]`` gains ``Up*(1[labels == c])``, so that ``sum_x Up(phi)(x) 1[labels(x) == c]``
    is the product of ``weights[c]`` with phi on the patch grid.

    Args:
        weights: (C, h, w) float64, changed in place.
        labels: (rows, W) class of each pixel of a band, negative where a pixel counts for none.
        top: The band's first row in the image.
        size: Height and width of the image.
        values: Optional (rows, W) weight of each pixel instead of 1.
    """
    _, grid_height, grid_width = weights.shape
    row, column = torch.nonzero(labels >= 0, as_tuple=True)
    picked = labels[row, column].long()
    value = None if values is None else values[row, column].to(weights.dtype)
    vertical = axis_taps(grid_height, size[0], device=str(weights.device))
    horizontal = axis_taps(grid_width, size[1], device=str(weights.device))
    row = row + top
    down, right = vertical.weight.to(weights.dtype)[row], horizontal.weight.to(weights.dtype)[column]
    flat = weights.view(-1)
    for y, vertical_weight in ((vertical.low[row], 1 - down), (vertical.high[row], down)):
        start = (picked * grid_height + y) * grid_width
        for x, horizontal_weight in ((horizontal.low[column], 1 - right), (horizontal.high[column], right)):
            weight = vertical_weight * horizontal_weight
            flat.index_add_(0, start + x, weight if value is None else weight * value)


class UpsampledNorm:
    """``|Up(phi)|`` at every pixel, without ever upsampling phi.

    The squared norm is a quadratic form of the four patches around a pixel. Along columns it is expanded once, on
    (h, W) maps: the squared norm of each patch row, and its inner product with the row below. A band of pixel rows
    then mixes two of those rows.

    Args:
        phi: (D, h, w) patch features.
        size: Height and width of the image.
    """

    def __init__(self, phi: Tensor, size: tuple[int, int]) -> None:
        # float64 keeps the norm right where neighbouring patches point in nearly opposite directions.
        phi = phi.double()
        self.size = size
        taps = axis_taps(phi.shape[2], size[1], device=str(phi.device))
        below = torch.cat((phi[:, 1:], phi[:, -1:]), 1)
        beside = torch.cat((phi[:, :, 1:], phi[:, :, -1:]), 2)
        below_beside = torch.cat((below[:, :, 1:], below[:, :, -1:]), 2)

        right = taps.weight.double()
        left = 1 - right

        def along_columns(straight: Tensor, crossed: Tensor) -> Tensor:
            mixed = left.square() * straight[:, taps.low] + right.square() * straight[:, taps.high]
            return mixed + left * right * crossed[:, taps.low]

        dot = lambda a, b: (a * b).sum(0)  # noqa: E731
        self.row = along_columns(dot(phi, phi), 2 * dot(phi, beside))
        self.row_below = along_columns(dot(phi, below), dot(phi, below_beside) + dot(beside, below))

    def rows(self, top: int, bottom: int) -> Tensor:
        """The norm at rows ``top`` to ``bottom``: (bottom - top, W) float32."""
        taps = axis_taps(self.row.shape[0], self.size[0], device=str(self.row.device))
        low, high = taps.low[top:bottom], taps.high[top:bottom]
        down = taps.weight[top:bottom, None].double()
        up = 1 - down
        squared = up.square() * self.row[low] + down.square() * self.row[high] + 2 * up * down * self.row_below[low]
        return squared.clamp_(min=0).sqrt_().float()
