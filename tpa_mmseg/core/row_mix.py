"""RowMix: a map in the form that kernels read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from .tables import kept_per_shape, to_device
from .taps import host_taps


@dataclass(frozen=True, eq=False)
class RowMix:
    """A (channels, H, W) map as rows of full width that are mixed: what a kernel reads."""

    values: Tensor  #: (channels, R, W) float32 source rows
    index: Tensor  #: (H, K) int32 the K source rows of each row
    weight: Tensor  #: (H, K) float32 their weights

    @classmethod
    def plain(cls, values: Tensor) -> RowMix:
        """Rows that are mixed with nothing."""
        return cls(values, *_identity(values.shape[1], str(values.device)))

    @classmethod
    def resized(cls, values: Tensor, height: int, align_corners: bool) -> RowMix:
        """Rows that a bilinear resize mixes."""
        return cls(values, *_two_taps(values.shape[1], height, align_corners, str(values.device)))


@kept_per_shape(64)
def _identity(height: int, device: str) -> tuple[Tensor, Tensor]:
    index = np.arange(height, dtype=np.int32)[:, None]
    return to_device(index, device), to_device(np.ones((height, 1), np.float32), device)


@kept_per_shape(64)
def _two_taps(source: int, target: int, align_corners: bool, device: str) -> tuple[Tensor, Tensor]:
    taps = host_taps(source, target, align_corners)
    index = np.stack((taps.low, taps.high), 1).astype(np.int32)
    return to_device(index, device), to_device(np.stack((1 - taps.weight, taps.weight), 1), device)
