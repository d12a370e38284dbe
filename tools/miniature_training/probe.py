"""What a network can do so far: recall of the patches of val scenes."""

from __future__ import annotations

import torch
from torch import Tensor

from tpa_mmseg.miniature.world import CLASSES, IGNORED


def class_shares(labels: Tensor) -> Tensor:
    """(..., classes) share of each class in (..., pixels) labels."""
    return torch.stack([(labels == index).float().mean(-1) for index in range(len(CLASSES))], -1)


def patch_labels(labels: Tensor, patch: int) -> Tensor:
    """(B, h, w) label of each patch of (B, H, W) labels, IGNORED where it covers less than 80 % of the patch."""
    cells = labels.unfold(1, patch, patch).unfold(2, patch, patch).flatten(3)
    share, label = class_shares(cells).max(-1)
    return torch.where(share > 0.8, label, IGNORED)


def mean_recall(found: Tensor, truth: Tensor) -> float:
    """Mean over the classes of the share of their patches that was found."""
    recalls = [(found == index)[truth == index].float().mean() for index in truth.unique() if index != IGNORED]
    return float(torch.stack(recalls).mean())
