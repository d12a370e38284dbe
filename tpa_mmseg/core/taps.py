"""Which source positions bilinear resizing mixes at each target position of an axis, and with which weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

from .tables import kept_per_band, kept_per_shape, to_device


class Taps(NamedTuple):
    """Which two source positions a target position mixes, along one axis of ``n`` target positions."""

    low: Tensor  #: (n,) index of the first source position
    high: Tensor  #: (n,) index of the second
    weight: Tensor  #: (n,) float32 weight of the second; the first has ``1 - weight``


class HostTaps(NamedTuple):
    """The same as arrays in the memory of the host: to choose rows with, without asking a GPU."""

    low: np.ndarray
    high: np.ndarray
    weight: np.ndarray


@kept_per_shape(256)
def host_taps(source: int, target: int, align_corners: bool = False) -> HostTaps:
    """The taps that resize an axis from ``source`` to ``target`` positions, with PyTorch's own float32 rounding."""
    # Rounded once at the end, like the fused multiply-add of PyTorch's kernels: the weights are equal bit for bit.
    position: np.ndarray = np.arange(target, dtype=np.float64)
    if align_corners:
        position = position * np.float64(np.float32((source - 1) / (target - 1) if target > 1 else 0.0))
    else:
        position = (position + 0.5) * np.float64(np.float32(source / target)) - 0.5
    position = position.astype(np.float32).clip(min=0)
    low = position.astype(np.int64).clip(max=source - 1)
    high = (low + 1).clip(max=source - 1)
    return HostTaps(low, high, (position - low.astype(np.float32)).clip(0, 1))


@kept_per_shape(256)
def axis_taps(source: int, target: int, align_corners: bool = False, device: str = 'cpu') -> Taps:
    """The taps of :func:`host_taps` on a device."""
    return Taps(*(to_device(table, device) for table in host_taps(source, target, align_corners)))


class BandTaps(NamedTuple):
    """The taps of a band of rows, counted from the first source row that it needs."""

    low: Tensor  #: (rows,)
    high: Tensor  #: (rows,)
    weight: Tensor  #: (rows, 1) float32


@kept_per_band
def band_taps(source: int, target: int, align_corners: bool, top: int, bottom: int, device: str) -> BandTaps:
    """The taps of the rows ``top`` to ``bottom`` of an axis."""
    low, high, weight = (table[top:bottom] for table in host_taps(source, target, align_corners))
    return BandTaps(*(to_device(table, device) for table in (low - low[0], high - low[0], weight[:, None])))
