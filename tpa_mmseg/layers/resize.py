"""Sizes in whole patches, and the resize of images to them."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def nearest_multiple(side: float, patch: int) -> int:
    """Returns the multiple of ``patch`` nearest to ``side``, at least one patch; half-way between two, the larger."""
    return max(1, int(side / patch + 0.5)) * patch


def next_multiple(side: int, patch: int) -> int:
    """Returns the smallest multiple of ``patch`` that is not below ``side``."""
    return -(-side // patch) * patch


def resize(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Resizes (B, 3, H, W) images bilinearly, without antialiasing; returns them as they are if the size is right."""
    if tuple(images.shape[-2:]) == tuple(size):
        return images
    return F.interpolate(images, size=tuple(size), mode='bilinear', align_corners=False)
