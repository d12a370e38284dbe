"""Which pixels are anchors, and their weight on the encoder's patch grid (Algorithm 1, steps 1 and 2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .bilinear import axis_taps, spread_
from .scores import ScoreMap

# With one or two classes k/C would reach 1, which no probability exceeds.
_HIGHEST_TAU = 0.9


@dataclass(frozen=True)
class AnchorRule:
    """What makes a pixel an anchor of its class.

    Args:
        k: The class probability must exceed ``tau = min(k / C, 0.9)``.
        k_min: A class with fewer anchors contributes nothing.
        k_min_scope: Where ``k_min`` counts: per ``'image'`` (Algorithm 1) or over the whole ``'pool'``.
        per: Anchors are ``'pixel'``s, or ``'patch'``es whose probabilities are bilinearly resized to the patch grid.
        random: The ablation that keeps the number of anchors per class and image but takes random pixels.
    """

    k: float = 2.0
    k_min: int = 5
    k_min_scope: str = 'image'
    per: str = 'pixel'
    random: bool = False

    def __post_init__(self) -> None:
        for name, allowed in (('k_min_scope', ('image', 'pool')), ('per', ('pixel', 'patch'))):
            if getattr(self, name) not in allowed:
                raise ValueError(f'anchors.{name} must be one of {allowed}, not {getattr(self, name)!r}')

    def tau(self, num_classes: int) -> float:
        return min(self.k / num_classes, _HIGHEST_TAU)

    def as_dict(self) -> dict:
        return asdict(self)


class Anchors(NamedTuple):
    """The anchors of one image."""

    weights: Tensor  #: (C, h, w) float64: the adjoint of upsampling applied to each class's anchors
    counts: Tensor  #: (C,) int64 number of anchors


def find_anchors(scores: ScoreMap, grid: tuple[int, int], rule: AnchorRule, seed: int = 0) -> Anchors:
    """The anchors of an image, as weights on the patch grid.

    Args:
        scores: The host's probabilities.
        grid: Height and width of the encoder's patch grid.
        rule: What an anchor is.
        seed: Decides the pixels of random anchors; give each image its own.
    """
    weights = torch.zeros(scores.num_classes, *grid, dtype=torch.float64, device=scores.device)
    if rule.per == 'patch':
        labels = _patch_labels(scores, grid, rule)
        counts = _count(labels, scores.num_classes)
        bands = [(0, grid, labels)]
    elif rule.random:
        labels = anchor_map(scores, rule)
        counts = _count(labels, scores.num_classes)
        bands = [(0, scores.size, labels)]
    else:
        counts = torch.zeros(scores.num_classes, dtype=torch.int64, device=scores.device)
        bands = ((top, scores.size, _band_labels(scores, top, bottom, rule)) for top, bottom in scores.ranges())
    for top, size, labels in bands:
        if rule.random:
            labels = _shuffle(labels, seed)
        elif rule.per == 'pixel':
            counts += _count(labels, scores.num_classes)
        spread_(weights, labels, top, size)
    if rule.k_min_scope == 'image':
        few = counts < rule.k_min
        counts = counts.masked_fill(few, 0)
        weights[few] = 0
    return Anchors(weights, counts)


def anchor_map(scores: ScoreMap, rule: AnchorRule) -> Tensor:
    """(H, W) class of every anchor pixel, -1 elsewhere, before ``k_min``: for pictures and statistics."""
    labels = torch.empty(scores.size, dtype=torch.int64, device=scores.device)
    for top, bottom in scores.ranges():
        labels[top:bottom] = _band_labels(scores, top, bottom, rule)
    return labels


def _band_labels(scores: ScoreMap, top: int, bottom: int, rule: AnchorRule) -> Tensor:
    """(rows, W) anchor classes of a band, -1 elsewhere."""
    log = scores.log_band(top, bottom)
    best, label = log.max(0)
    probability = log.sub_(best).exp_().sum(0).reciprocal_()
    # A NaN compares as false: a pixel without a distribution is never an anchor.
    return label.masked_fill_(~(probability > rule.tau(scores.num_classes)), -1)


def _patch_labels(scores: ScoreMap, grid: tuple[int, int], rule: AnchorRule) -> Tensor:
    """(h, w) anchor classes on the patch grid, -1 elsewhere; only the two pixel rows per patch row are decoded."""
    vertical = axis_taps(scores.size[0], grid[0], device=str(scores.device))
    horizontal = axis_taps(scores.size[1], grid[1], device=str(scores.device))
    labels = torch.empty(grid, dtype=torch.int64, device=scores.device)
    for row in range(grid[0]):
        low, high = int(vertical.low[row]), int(vertical.high[row])
        two = torch.lerp(*scores.band(low, high + 1)[:, [0, high - low]].unbind(1), vertical.weight[row])
        best, label = torch.lerp(two[:, horizontal.low], two[:, horizontal.high], horizontal.weight).max(0)
        labels[row] = label.masked_fill(~(best > rule.tau(scores.num_classes)), -1)
    return labels


def _count(labels: Tensor, num_classes: int) -> Tensor:
    """(C,) number of pixels of each class; negative labels do not count."""
    return torch.bincount(labels.flatten() + 1, minlength=num_classes + 1)[1:]


def _shuffle(labels: Tensor, seed: int) -> Tensor:
    """The same labels at random places, the same places on every device."""
    order = torch.randperm(labels.numel(), generator=torch.Generator().manual_seed(seed)).to(labels.device)
    return labels.flatten()[order].view_as(labels)
