"""Sizes in whole patches, and the resize that brings an image to them."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def nearest_multiple(side: float, patch: int) -> int:
    """The multiple of ``patch`` nearest to ``side``, at least one patch; half-way between two, the larger."""
    return max(1, int(side / patch + 0.5)) * patch


def next_multiple(side: int, patch: int) -> int:
    """The smallest multiple of ``patch`` that is not below ``side``."""
    return -(-side // patch) * patch


def resize(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Bilinear resize of (B, 3, H, W) images without antialiasing, the images themselves where the size is right."""
    if tuple(images.shape[-2:]) == tuple(size):
        return images
    return F.interpolate(images, size=tuple(size), mode='bilinear', align_corners=False)
