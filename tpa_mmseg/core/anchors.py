"""Which pixels are anchors, and their weight on the encoder's patch grid (Algorithm 1, steps 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Literal, NamedTuple

import torch
from torch import Tensor

from ..options import NotNegative, Range, check_fields
from .adjoint import spread_
from .bilinear import Resized
from .decision import PeakMap, best_class, count_labels
from .fused import fused_anchors
from .given import given
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
        per: An anchor is a ``'pixel'``, or a ``'patch'`` whose probabilities are bilinearly resized to the patch grid.
        random: The ablation that keeps the number of anchors per class and image but takes random pixels.
    """

    k: NotNegative = 2.0
    k_min: Annotated[int, Range(0)] = 5
    k_min_scope: Literal['image', 'pool'] = 'image'
    per: Literal['pixel', 'patch'] = 'pixel'
    random: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

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
    plain = rule.per == 'pixel' and not rule.random
    found = fused_anchors(scores, grid, rule.tau(scores.num_classes)) if plain else None
    weights, counts = found or _spread_anchors(scores, grid, rule, seed)
    if rule.k_min_scope == 'image':
        few = counts < rule.k_min
        counts.masked_fill_(few, 0)
        weights.masked_fill_(few[:, None, None], 0)
    return Anchors(weights, counts)


def _spread_anchors(scores: ScoreMap, grid: tuple[int, int], rule: AnchorRule, seed: int) -> tuple[Tensor, Tensor]:
    """(C, h, w) float64 weights and (C,) int64 counts of the anchors, before ``k_min``."""
    weights = torch.zeros(scores.num_classes, *grid, dtype=torch.float64, device=scores.device)
    counts = torch.zeros(scores.num_classes, dtype=torch.int64, device=scores.device)
    for top, size, labels in _labeled_bands(scores, grid, rule, seed):
        counts += count_labels(labels + 1, scores.num_classes + 1)[1:]
        spread_(weights, labels, top, size)
    return weights, counts


def anchor_map(scores: ScoreMap, rule: AnchorRule) -> Tensor:
    """(H, W) class of every anchor pixel, -1 elsewhere, before ``k_min``: for pictures and statistics."""
    bands = [labels for _, labels in _anchor_bands(scores, rule)]
    return bands[0] if len(bands) == 1 else torch.cat(bands)


def _labeled_bands(
    scores: ScoreMap, grid: tuple[int, int], rule: AnchorRule, seed: int
) -> Iterator[tuple[int, tuple[int, int], Tensor]]:
    """First row, size of the whole map and (rows, W) anchor classes of each band, -1 where there is no anchor."""
    if rule.per == 'patch':
        size, labels = grid, _patch_labels(scores, grid, rule)
    elif rule.random:
        size, labels = scores.size, anchor_map(scores, rule)
    else:
        for top, labels in _anchor_bands(scores, rule):
            yield top, scores.size, labels
        return
    yield 0, size, _shuffle(labels, seed) if rule.random else labels


def _anchor_bands(scores: ScoreMap, rule: AnchorRule) -> Iterator[tuple[int, Tensor]]:
    """First row and (rows, W) int64 anchor classes of each band, -1 elsewhere."""
    tau = rule.tau(scores.num_classes)
    parts = list(scores.parts())
    if len(parts) == 1:
        for top, bottom in scores.ranges():
            # In a call, so that a band is freed before the next one is made.
            yield top, _band_anchors(scores.log_band(top, bottom), tau)
        return
    peaks = PeakMap(scores.size, scores.device, torch.int64, keep_best=True, with_total=True)
    for first, part in parts:
        for top, bottom in part.ranges():
            peaks.take(top, part.log_band(top, bottom), first)
        part.release()
    yield 0, _confident(given(peaks.total).reciprocal_(), peaks.label, tau)


def _band_anchors(log: Tensor, tau: float) -> Tensor:
    """(rows, W) anchor classes of a band, -1 elsewhere. Args: log (C, rows, W), changed in place."""
    best, label = best_class(log)
    return _confident(log.sub_(best).exp_().sum(0).reciprocal_(), label, tau)


class _Probabilities:
    """The probabilities of a ScoreMap as a :class:`RowSource`."""

    def __init__(self, scores: ScoreMap) -> None:
        self.shape, self.device = (scores.num_classes, *scores.size), scores.device
        self.rows, self.nbytes, self.release = scores.band, scores.nbytes, scores.release
        self.most_channels: int | None = None

    def channels(self, first: int, last: int) -> None:
        return None


def patch_probabilities(scores: ScoreMap, grid: tuple[int, int]) -> Tensor:
    """(C, h, w) probabilities resized to the patch grid; only two pixel rows per patch row are decoded."""
    patches = Resized(_Probabilities(scores), grid)
    return torch.cat([patches.rows(row, row + 1) for row in range(grid[0])], dim=1)


def _patch_labels(scores: ScoreMap, grid: tuple[int, int], rule: AnchorRule) -> Tensor:
    """(h, w) anchor classes on the patch grid, -1 elsewhere."""
    probability, label = best_class(patch_probabilities(scores, grid))
    return _confident(probability, label, rule.tau(scores.num_classes))


def _confident(probability: Tensor, label: Tensor, tau: float) -> Tensor:
    """The labels whose probability exceeds tau, -1 elsewhere. A NaN exceeds nothing and is never an anchor."""
    return label.masked_fill(~(probability > tau), -1)


def _shuffle(labels: Tensor, seed: int) -> Tensor:
    """The same labels at random places, the same places on every device."""
    generator = torch.Generator('cpu').manual_seed(seed)
    order = torch.randperm(labels.numel(), generator=generator, device='cpu').to(labels.device)
    return labels.flatten()[order].view_as(labels)
