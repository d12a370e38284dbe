"""The adjoint of bilinear upsampling: from the pixels of a class back to patches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

from .bilinear import band_ranges
from .tables import kept_per_shape, to_device
from .taps import host_taps


class _Corners(NamedTuple):
    """The four patches that a pixel mixes, as two of rows and two of columns."""

    rows: Tensor  #: (2, 1, H, 1) int64 offset of the patch row in a flattened grid
    row_weights: Tensor  #: (2, 1, H, 1) float64
    columns: Tensor  #: (2, 1, W) int64
    column_weights: Tensor  #: (2, 1, W) float64


@kept_per_shape(64)
def _corners(grid: tuple[int, int], size: tuple[int, int], device: str) -> _Corners:
    (low, high, down), (left, right, across) = (host_taps(*axis) for axis in zip(grid, size, strict=True))
    down, across = down.astype(np.float64), across.astype(np.float64)
    tables = (
        np.stack((low, high))[:, None, :, None] * grid[1],
        np.stack((1 - down, down))[:, None, :, None],
        np.stack((left, right))[:, None],
        np.stack((1 - across, across))[:, None],
    )
    return _Corners(*(to_device(table, device) for table in tables))


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
    # Four places and shares of eight bytes per pixel.
    rows, columns = labels.shape
    for first, last in band_ranges(16, (rows, columns), weights.device):
        _spread_band_(weights, labels[first:last], top + first, size)


def _spread_band_(weights: Tensor, labels: Tensor, top: int, size: tuple[int, int]) -> None:
    """What :func:`spread_` does, at once."""
    _, height, width = weights.shape
    corners = _corners((height, width), (size[0], size[1]), str(weights.device))
    band = slice(top, top + labels.shape[0])
    rows, row_weights, columns, column_weights = corners
    rows, row_weights = rows[:, :, band], row_weights[:, :, band]
    counted = labels >= 0
    if labels.device.type == 'cpu' and 4 * int(counted.sum()) < counted.numel():
        # Few are worth choosing.
        y, x = counted.nonzero(as_tuple=True)
        labels, rows, row_weights = labels[y, x], rows[:, :, y, 0], row_weights[:, :, y, 0]
        columns, column_weights = columns[:, 0, x], column_weights[:, 0, x]
    else:
        # To choose many takes longer than to add all, and on a GPU it would mean to wait: a pixel without a class adds
        # nothing to class 0.
        labels, row_weights = labels.clamp(min=0), row_weights * counted
    places = labels.long() * (height * width) + rows + columns
    weights.view(-1).index_add_(0, places.flatten(), (row_weights * column_weights).flatten())
