"""Semantic feedback refinement (SFR) of ResCLIP: attention between patches that follows from a first prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ..hosts.pamr import refine_
from ..options import AtLeastOne, Positive, Range, Share, check_fields

# Pairs of patches whose paths are followed at the same time.
_CHUNK_PAIRS = 1 << 20
_EPS = 1e-8


@dataclass(frozen=True)
class Feedback:
    """Every pre-softmax score matrix Z of the host becomes ``scale ((1 - weight) Z + weight S)``.

    S is large for pairs of patches with the same label in the first prediction. Labels in it are text queries, so
    synonyms are different labels.

    Args:
        scale: tau_s.
        weight: lambda_s.
        temp_thd: Pixels whose best probability is below it get label 0, whether or not that is a background.
        connectivity: Patches of one label that no path of that label connects attend less to each other, the farther
            apart the less. The path is a straight line. ``'full'`` checks all of it. The original divides it by the
            longest distance in the grid instead of its own length, so that only the beginning of a short path is
            checked: ``'partial'``. With None all patches of a label attend to each other.
        gaussian_std: Of the smoothing along the rows of S. It runs over the flattened grid, as in the original.
        pamr_steps: Steps of mask refinement of the first prediction, 0 for none.
        pamr_dilations: Distances of the neighbors in it.
    """

    scale: Positive = 2.1
    weight: Share = 0.7
    temp_thd: Share = 0.1
    connectivity: Literal['partial', 'full'] | None = 'partial'
    gaussian_std: Positive = 5.0
    pamr_steps: Annotated[int, Range(0)] = 10
    pamr_dilations: tuple[AtLeastOne, ...] = (8, 16)

    def __post_init__(self) -> None:
        check_fields(self)

    def attention(self, cosines: Tensor, images: Tensor, logit_scale: float, patch: int) -> Tensor:
        """The feedback of some windows.

        Args:
            cosines: (B, Q, h, w) of the first prediction.
            images: (B, 3, H, W) the windows.
            logit_scale: Factor of the cosines.
            patch: Side of a patch in pixels.

        Returns:
            (B, 1, 1 + h w, 1 + h w) matrices S, at most one; zero in the row and the column of the class token.
        """
        maps = []
        for scores, image in zip(cosines, images, strict=True):
            labels = patch_labels(self.probabilities(scores, image, logit_scale), self.temp_thd, patch)
            semantic = semantic_attention(labels, self.connectivity, self.gaussian_std)
            maps.append(F.pad(semantic / semantic.max(), (1, 0, 1, 0)))
        return torch.stack(maps)[:, None]

    def probabilities(self, scores: Tensor, image: Tensor, logit_scale: float) -> Tensor:
        """(Q, h, w) cosines -> (Q, H, W) probabilities of the queries in the (3, H, W) image."""
        full = F.interpolate(scores[None], image.shape[-2:], mode='bilinear')[0]
        if self.pamr_steps:
            refine_(full, image, self.pamr_steps, self.pamr_dilations)
        return full.mul_(logit_scale).softmax(0)

    def changes(self, semantic: Tensor, dim: int) -> dict:
        """Returns the bias and scale of the changed scores. Args: semantic: S; dim: channels per head."""
        return {'bias': self.scale * self.weight * semantic, 'scale': self.scale * (1 - self.weight) * dim**-0.5}


def patch_labels(probabilities: Tensor, threshold: float, patch: int) -> Tensor:
    """Returns the most frequent label among the pixels of each patch; in a tie, the lowest.

    Args:
        probabilities: (Q, H, W).
        threshold: Pixels whose best probability is below it get label 0.
        patch: Side of a patch. Pixels beyond the last whole patch are ignored.

    Returns:
        (H // patch, W // patch) int64.
    """
    queries, height, width = len(probabilities), *(side // patch for side in probabilities.shape[1:])
    best, labels = probabilities[:, : height * patch, : width * patch].max(0)
    labels = labels.masked_fill(best < threshold, 0)
    # One histogram per patch, side by side in one.
    place = torch.arange(height * width, device=labels.device).view(height, width) * queries
    place = place.repeat_interleave(patch, 0).repeat_interleave(patch, 1)
    counts = torch.bincount((place + labels).flatten(), minlength=height * width * queries)
    return counts.view(height, width, queries).argmax(2)


def semantic_attention(labels: Tensor, connectivity: str | None, std: float) -> Tensor:
    """Computes attention weights between the patches of a label map: (h, w) -> (N, N), rows sum to one."""
    flat = labels.flatten()
    affinity = (flat[:, None] == flat).float()
    if connectivity is not None and len(flat) > 1:
        affinity *= torch.where(connected(labels, connectivity), 1, distance_decay(labels))
    kernel = gaussian_kernel(len(flat), std).to(affinity)
    smooth = F.conv1d(affinity[:, None], kernel.view(1, 1, -1), padding=len(kernel) // 2)[:, 0]
    return smooth / (smooth.sum(1, keepdim=True) + _EPS)


def distance_decay(labels: Tensor) -> Tensor:
    """``exp(-D / T)`` of all pairs, with T the largest distance D: (h, w) -> (N, N)."""
    distance = _coordinates(labels)[:, None].sub(_coordinates(labels)).abs().amax(2)
    return torch.exp(-distance / distance.max())


def gaussian_kernel(length: int, std: float) -> Tensor:
    """A Gaussian at ``6 std + 1`` integers around zero, or at ``length`` of them if that is less; one more if even."""
    size = min(length, int(6 * std + 1))
    offsets = torch.arange(size + (size + 1) % 2) - size // 2
    return torch.exp(-offsets.square() / (2 * std**2))


def connected(labels: Tensor, connectivity: str) -> Tensor:
    """Finds the pairs of patches that have one label on the way from the one to the other.

    The patches on the way from i to j are at ``i (1 - t) + j t`` with ``t = k / S``, rounded half to even, for k up to
    the (Chebyshev) distance of i and j. S is that distance for the full path, the largest of all distances for the
    partial one. The partial path is that of the original, float32 rounding included: about half-way between two
    patches it decides which of them is on the way.

    Args:
        labels: (h, w).
        connectivity: ``'full'`` or ``'partial'``.

    Returns:
        (N, N) bool.
    """
    where, flat = _coordinates(labels).float(), labels.flatten()
    out = flat[:, None] == flat
    longest = max(labels.shape) - 1
    times = torch.linspace(0, 1, longest + 1, device=labels.device)
    for first, second in _pairs(out):
        for k in range(1, longest + 1):
            way = where[second] - where[first]
            distance = way.abs().amax(1, keepdim=True)
            going = (distance >= k)[:, 0]
            first, second, way = first[going], second[going], way[going]
            if connectivity == 'full':
                # One division of integers: points half-way between two patches are exact.
                steps = distance[going]
                points = (where[first] * steps + way * k) / steps
            else:
                points = where[first] * (1 - times[k]) + where[second] * times[k]
            row, column = points.round().long().T
            same = labels[row, column] == flat[first]
            out[first[~same], second[~same]] = False
            first, second = first[same], second[same]
    return out


def _pairs(mask: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields rows and columns of the True entries of an (N, N) mask, a bounded number of them at a time."""
    rows = max(1, _CHUNK_PAIRS // len(mask))
    for top in range(0, len(mask), rows):
        first, second = mask[top : top + rows].nonzero().T
        yield first + top, second


def _coordinates(labels: Tensor) -> Tensor:
    """(h, w) -> (N, 2) row and column of each patch."""
    return torch.cartesian_prod(*(torch.arange(side, device=labels.device) for side in labels.shape))
