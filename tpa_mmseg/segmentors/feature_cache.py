"""Keeps the features of pool images, so that an image in the pool and in the test set is encoded once."""

from __future__ import annotations

import torch
from torch import Tensor


class FeatureCache:
    """Half-precision features on the CPU, up to a number of bytes.

    While a cache is in use every feature is rounded to half precision, kept or not: the numbers of an image may not
    depend on which images happened to be in the cache (of this rank).

    Args:
        limit: Bytes that may be kept; once they are used up, nothing more is added.
    """

    def __init__(self, limit: int) -> None:
        self.limit = int(limit)
        self.used = 0
        self._features: dict[tuple, Tensor] = {}

    def get(self, key: tuple, device: torch.device) -> Tensor | None:
        """(D, h, w) float32 features of an image seen before."""
        kept = self._features.get(key)
        return None if kept is None else kept.to(device).float()

    def round(self, phi: Tensor) -> Tensor:
        """The features as they would come back from the cache."""
        half = phi.half()
        return half.float() if torch.isfinite(half).all() else phi

    def put(self, key: tuple, phi: Tensor) -> None:
        """Keeps rounded features if they fit. Features beyond the range of half precision are not kept."""
        half = phi.half()
        size = half.numel() * half.element_size()
        if key in self._features or self.used + size > self.limit or not torch.isfinite(half).all():
            return
        self._features[key] = half.cpu()
        self.used += size
