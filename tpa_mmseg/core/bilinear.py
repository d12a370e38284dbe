"""The algebra of bilinear resizing: a band of it, its adjoint, and the norm of a resized feature.

Resizing is linear, so no feature map ever has to exist at full size. ``F.interpolate(mode='bilinear')`` is the
definition; everything here computes the same numbers in bands of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

# Elements of one (C, rows, W) band: what stays in a CPU's cache, and what keeps a GPU busy.
_BAND_ELEMENTS = {'cpu': 3 << 19, 'cuda': 1 << 24}


def band_ranges(channels: int, size: tuple[int, int], device: torch.device) -> Iterator[tuple[int, int]]:
    """Cuts the rows of a (channels, H, W) map into bands: (top, bottom) pairs."""
    height, width = size
    rows = max(1, min(64, _BAND_ELEMENTS.get(device.type, 1 << 24) // max(1, channels * width)))
    for top in range(0, height, rows):
        yield top, min(height, top + rows)


class Taps(NamedTuple):
    """Which two source positions a target position mixes, along one axis of ``n`` target positions."""

    low: Tensor  #: (n,) index of the first source position
    high: Tensor  #: (n,) index of the second
    weight: Tensor  #: (n,) float32 weight of the second; the first has ``1 - weight``


@lru_cache(maxsize=256)
def axis_taps(source: int, target: int, align_corners: bool = False, device: str = 'cpu') -> Taps:
    """The taps that resize an axis from ``source`` to ``target`` positions, with PyTorch's own float32 rounding."""
    # Rounded once at the end, like the fused multiply-add of PyTorch's kernels: the weights are equal bit for bit.
    position = torch.arange(target, dtype=torch.float64, device='cpu')
    if align_corners:
        position = position * _float32((source - 1) / (target - 1) if target > 1 else 0.0)
    else:
        position = (position + 0.5) * _float32(source / target) - 0.5
    position = position.float().clamp_(min=0)
    low = position.long().clamp_(max=source - 1)
    high = (low + 1).clamp_(max=source - 1)
    weight = (position - low).clamp_(0, 1)
    return Taps(low.to(device), high.to(device), weight.to(device))


def _float32(value: float) -> float:
    return torch.tensor(value, dtype=torch.float32, device='cpu').item()


class RowSource(Protocol):
    """A (C, H, W) map that can be asked for any band of its rows."""

    @property
    def shape(self) -> tuple[int, int, int]: ...

    @property
    def device(self) -> torch.device: ...

    def rows(self, top: int, bottom: int) -> Tensor:
        """Rows ``top`` to ``bottom`` as float32 (C, bottom - top, W); the caller may not write to them."""

    @property
    def nbytes(self) -> int:
        """Bytes that the map and everything behind it hold."""

    def release(self) -> None:
        """Free what can be computed again without a network."""


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

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    def release(self) -> None:
        pass


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

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self.source.shape[0], *self.size)

    @property
    def device(self) -> torch.device:
        return self.source.device

    @property
    def nbytes(self) -> int:
        return self.source.nbytes

    def release(self) -> None:
        self.source.release()

    def rows(self, top: int, bottom: int) -> Tensor:
        height = self.source.shape[1]
        if height == self.size[0]:
            return self._resize_columns(self.source.rows(top, bottom).detach())
        taps = axis_taps(height, self.size[0], self.align_corners)
        first, last = int(taps.low[top]), int(taps.high[bottom - 1]) + 1
        block = self.source.rows(first, last).detach()
        # Rows and columns are resized apart, in the order that leaves fewer rows to the columns. It does not depend on
        # the band, so that a row has the same bits in every band.
        if height < self.size[0]:
            return self._resize_rows(self._resize_columns(block), top, bottom, first)
        return self._resize_columns(self._resize_rows(block, top, bottom, first))

    def _resize_columns(self, block: Tensor) -> Tensor:
        """(C, rows, w) -> (C, rows, W)."""
        if block.shape[2] == self.size[1]:
            return block
        return F.interpolate(block, self.size[1], mode='linear', align_corners=self.align_corners)

    def _resize_rows(self, block: Tensor, top: int, bottom: int, first: int) -> Tensor:
        """(C, last - first, width), the source's rows from ``first`` on -> (C, bottom - top, width)."""
        source, target = self.source.shape[1], self.size[0]
        low = axis_taps(source, target, self.align_corners).low[top:bottom].tolist()
        weight = axis_taps(source, target, self.align_corners, str(block.device)).weight[top:bottom, None]
        out = block.new_empty(block.shape[0], bottom - top, block.shape[2])
        # All target rows between the same two source rows at once: the two are broadcast, nothing is gathered.
        start = 0
        for row, run in groupby(low):
            stop = start + len(list(run))
            above, below = block[:, row - first, None], block[:, min(row + 1, source - 1) - first, None]
            torch.lerp(above, below, weight[start:stop], out=out[:, start:stop])
            start = stop
        return out


def spread_(weights: Tensor, labels: Tensor, top: int, size: tuple[int, int]) -> None:
    """The adjoint of bilinear upsampling for labeled pixels: adds each pixel's weight to its four patches.

    For every class c, ``weights[c]`` gains ``Up*(1[labels == c])``, so that ``sum_x Up(phi)(x) 1[labels(x) == c]``
    is the product of ``weights[c]`` with phi on the patch grid.

    Args:
        weights: (C, h, w) float64, changed in place.
        labels: (rows, W) class of each pixel of a band, negative where a pixel counts for none.
        top: The band's first row in the image.
        size: Height and width of the image.
    """
    _, grid_height, grid_width = weights.shape
    row, column = torch.nonzero(labels >= 0, as_tuple=True)
    picked = labels[row, column].long()
    vertical = axis_taps(grid_height, size[0], device=str(weights.device))
    horizontal = axis_taps(grid_width, size[1], device=str(weights.device))
    row = row + top
    down, right = vertical.weight.to(weights.dtype)[row], horizontal.weight.to(weights.dtype)[column]
    flat = weights.view(-1)
    for y, vertical_weight in ((vertical.low[row], 1 - down), (vertical.high[row], down)):
        start = (picked * grid_height + y) * grid_width
        for x, horizontal_weight in ((horizontal.low[column], 1 - right), (horizontal.high[column], right)):
            flat.index_add_(0, start + x, vertical_weight * horizontal_weight)


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
        self.size = size
        dim, height, width = phi.shape
        taps = axis_taps(width, size[1], device=str(phi.device))
        right = taps.weight.double()
        left = 1 - right

        def along_columns(straight: Tensor, crossed: Tensor) -> Tensor:
            mixed = left.square() * straight[:, taps.low] + right.square() * straight[:, taps.high]
            return mixed + left * right * crossed[:, taps.low]

        rows, rows_below = [], []
        # A few float64 copies of a band of patches exist at a time: keep it small.
        for top, bottom in band_ranges(8 * dim, (height, width), phi.device):
            patch, beside, below, below_beside = _neighbors(phi, top, bottom)
            rows.append(along_columns(_dot(patch, patch), 2 * _dot(patch, beside)))
            rows_below.append(along_columns(_dot(patch, below), _dot(patch, below_beside) + _dot(beside, below)))
        self.row, self.row_below = torch.cat(rows), torch.cat(rows_below)

    @property
    def nbytes(self) -> int:
        return self.row.nbytes + self.row_below.nbytes

    def rows(self, top: int, bottom: int) -> Tensor:
        """The norm at rows ``top`` to ``bottom``: (bottom - top, W) float32."""
        taps = axis_taps(self.row.shape[0], self.size[0], device=str(self.row.device))
        low, high = taps.low[top:bottom], taps.high[top:bottom]
        down = taps.weight[top:bottom, None].double()
        up = 1 - down
        squared = up.square() * self.row[low] + down.square() * self.row[high] + 2 * up * down * self.row_below[low]
        return squared.clamp_(min=0).sqrt_().float()


def _neighbors(phi: Tensor, top: int, bottom: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Patches of rows ``top`` to ``bottom``, those to their right, below and below right: (D, rows, w) float64 each.

    float64 keeps the norm right where neighboring patches point in nearly opposite directions.
    """
    block = phi[:, top : bottom + 1].detach().double()
    # Beyond the last row and column resizing repeats the last one.
    last_row_too = int(bottom == phi.shape[1])
    block = F.pad(block[None], (0, 1, 0, last_row_too), mode='replicate')[0]
    return block[:, :-1, :-1], block[:, :-1, 1:], block[:, 1:, :-1], block[:, 1:, 1:]


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Inner products over features: two (D, rows, w) -> (rows, w)."""
    return (a * b).sum(0)
