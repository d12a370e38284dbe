"""The norm of an upsampled feature, at every pixel, from inner products of neighboring patches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .bilinear import band_ranges
from .tables import kept_per_band, kept_per_shape, to_device
from .taps import host_taps


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
        # A few float64 copies of a band of patches exist at a time: keep it small.
        bands = band_ranges(8 * dim, (height, width), phi.device)
        products = torch.cat([_products(phi, top, bottom) for top, bottom in bands], 1)
        self.row, self.row_below = products @ _column_weights(width, size[1], str(phi.device))
        self._whole: Tensor | None = None

    @property
    def nbytes(self) -> int:
        kept = 0 if self._whole is None else self._whole.nbytes
        return self.row.nbytes + self.row_below.nbytes + kept

    def rows(self, top: int, bottom: int) -> Tensor:
        """The norm at rows ``top`` to ``bottom``: (bottom - top, W) float32, which the caller may not change."""
        if self._whole is not None:
            return self._whole[top:bottom]
        mix = _row_weights(self.row.shape[0], self.size[0], top, bottom, str(self.row.device))
        squared = self.row.index_select(0, mix.low).mul_(mix.above)
        squared.addcmul_(self.row.index_select(0, mix.high), mix.below)
        squared.addcmul_(self.row_below.index_select(0, mix.low), mix.both)
        return squared.clamp_(min=0).sqrt_().float()

    def whole(self) -> Tensor:
        """The norm at every pixel, (H, W), which is kept: for those who need it twice."""
        if self._whole is None:
            bands = band_ranges(1, self.size, self.row.device)
            self._whole = torch.cat([self.rows(top, bottom) for top, bottom in bands])
        return self._whole


def _products(phi: Tensor, top: int, bottom: int) -> Tensor:
    """Inner products of patch rows ``top`` to ``bottom`` with themselves, and with the row below: (2, rows, 2 w).

    The first w columns hold those of a patch with the one at its place, the others those with its neighbors on the
    right, each pair once.
    """
    patch, beside, below, below_beside = _neighbors(phi, top, bottom)
    own = torch.cat((_dot(patch, patch), 2 * _dot(patch, beside)), 1)
    other = torch.cat((_dot(patch, below), _dot(patch, below_beside) + _dot(beside, below)), 1)
    return torch.stack((own, other))


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


@kept_per_shape(64)
def _column_weights(source: int, target: int, device: str) -> Tensor:
    """(2 source, target) float64: the quadratic form of a pixel's two columns, applied to the sums of _products."""
    taps, column = host_taps(source, target), np.arange(target)
    right = taps.weight.astype(np.float64)
    left = 1 - right
    matrix = np.zeros((2 * source, target))
    matrix[taps.low, column] += left**2
    matrix[taps.high, column] += right**2
    matrix[source + taps.low, column] += left * right
    return to_device(matrix, device)


class _RowWeights(NamedTuple):
    low: Tensor  #: (rows,) first patch row
    high: Tensor  #: (rows,) second patch row
    above: Tensor  #: (rows, 1) float64 weight of the first row's squared norm
    below: Tensor  #: (rows, 1) of the second's
    both: Tensor  #: (rows, 1) of their inner product


@kept_per_band
def _row_weights(source: int, target: int, top: int, bottom: int, device: str) -> _RowWeights:
    low, high, down = (table[top:bottom] for table in host_taps(source, target))
    down = down[:, None].astype(np.float64)
    up = 1 - down
    return _RowWeights(*(to_device(table, device) for table in (low, high, up**2, down**2, 2 * up * down)))
