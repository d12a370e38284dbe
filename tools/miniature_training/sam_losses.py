"""What the tiny SAM minimizes: focal and dice loss of its masks, and the error of their predicted quality."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

#: Weight of the focal loss beside the dice loss, as SAM was trained with.
FOCAL_WEIGHT = 20.0


def prompt_losses(logits: Tensor, quality: Tensor, targets: Tensor, ambiguous: bool) -> dict[str, Tensor]:
    """Losses of n prompts, each averaged over them.

    Of the three masks for an ambiguous prompt only the best one learns; the first token's mask learns from prompts that
    are clear. The quality is learnt for every mask that is in use.

    Args:
        logits: (n, 4, s, s) masks.
        quality: (n, 4) their predicted intersection over union.
        targets: (n, s, s) float true masks.
        ambiguous: Whether three masks may answer the prompts, or one must.

    Returns:
        ``mask`` and ``quality`` loss and the ``iou`` of the mask that learns.
    """
    used = slice(1, None) if ambiguous else slice(0, 1)
    logits, quality = logits[:, used], quality[:, used]
    wanted = targets[:, None].expand_as(logits)
    losses = FOCAL_WEIGHT * focal(logits, wanted) + dice(logits, wanted)
    reached = iou(logits > 0, wanted > 0)
    best = losses.detach().argmin(1, keepdim=True)
    return {
        'mask': losses.gather(1, best).mean(),
        'quality': (quality - reached).square().mean(),
        'iou': reached.gather(1, best).mean(),
    }


def focal(logits: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2.0) -> Tensor:
    """The focal loss of (..., s, s) logits, averaged over pixels: (...)."""
    entropy = F.binary_cross_entropy_with_logits(logits, targets, reduction='none')
    right = torch.exp(-entropy)
    weight = alpha * targets + (1 - alpha) * (1 - targets)
    return (weight * (1 - right) ** gamma * entropy).mean((-2, -1))


def dice(logits: Tensor, targets: Tensor) -> Tensor:
    """The dice loss of (..., s, s) logits: (...)."""
    shares = logits.sigmoid()
    both = (shares * targets).sum((-2, -1))
    return 1 - (2 * both + 1) / (shares.sum((-2, -1)) + targets.sum((-2, -1)) + 1)


def iou(masks: Tensor, targets: Tensor) -> Tensor:
    """Intersection over union of boolean (..., H, W) masks: (...), 0 where both are empty."""
    both, either = (masks & targets).sum((-2, -1)), (masks | targets).sum((-2, -1))
    return both / either.clamp(min=1)


def disagreement(embedding: Tensor, owners: Tensor, temperature: float = 0.1) -> Tensor:
    """How little of what a patch resembles is in its own region: the contrast of patches within one image.

    Masks teach the encoder through a decoder that has to learn as well. This teaches it directly, and much faster.

    Args:
        embedding: (D, g, g) of an image.
        owners: (g, g) region of each patch, -1 where it has none.
        temperature: Of the cosines.
    """
    inside = owners >= 0
    unit = F.normalize(embedding[:, inside], dim=0)
    itself = torch.eye(unit.shape[1], dtype=torch.bool)
    logits = (unit.T @ unit / temperature).masked_fill(itself, -torch.inf)
    same = (owners[inside][:, None] == owners[inside]) & ~itself
    accompanied = same.any(1)
    if not accompanied.any():
        return embedding.sum() * 0
    own = logits.masked_fill(~same, -torch.inf)[accompanied].logsumexp(1)
    return (logits[accompanied].logsumexp(1) - own).mean()
