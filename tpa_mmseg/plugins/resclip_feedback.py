"""Semantic feedback refinement (SFR) of ResCLIP: attention between patches that follows from a first prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..core.decision import count_labels
from ..core.tables import kept_per_shape, to_device
from ..hosts.pamr import refine_
from ..options import AtLeastOne, Positive, Range, Share, check_fields

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
        # The probabilities of one window at a time exist at full size.
        labels = [
            patch_labels(self.probabilities(scores, image, logit_scale), self.temp_thd, patch)
            for scores, image in zip(cosines, images, strict=True)
        ]
        semantic = semantic_attention(torch.stack(labels), self.connectivity, self.gaussian_std)
        return F.pad(semantic / semantic.amax((1, 2), keepdim=True), (1, 0, 1, 0))[:, None]

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
    counts = count_labels(place + labels, height * width * queries)
    return counts.view(height, width, queries).argmax(2)


def semantic_attention(labels: Tensor, connectivity: str | None, std: float) -> Tensor:
    """Computes attention weights between the patches of label maps: (..., h, w) -> (..., N, N), rows sum to one."""
    flat = labels.flatten(-2)
    affinity = (flat[..., None] == flat[..., None, :]).float()
    grid, count, device = (labels.shape[-2], labels.shape[-1]), flat.shape[-1], labels.device
    if connectivity is not None and count > 1:
        affinity *= torch.where(connected(labels, connectivity), 1, distance_decay(grid, device))
    kernel = gaussian_kernel(count, std, device)
    rows = affinity.view(-1, 1, count)
    smooth = F.conv1d(rows, kernel.view(1, 1, -1), padding=len(kernel) // 2).view_as(affinity)
    return smooth / (smooth.sum(-1, keepdim=True) + _EPS)


def distance_decay(grid: tuple[int, int], device: torch.device) -> Tensor:
    """``exp(-D / T)`` of all pairs of patches, with T the largest distance D: (N, N)."""
    longest = max(grid) - 1
    decay = torch.exp(-torch.arange(longest + 1, device=device) / longest)
    places = (torch.arange(side, device=device) for side in grid)
    down, across = (decay[(place[:, None] - place).abs()] for place in places)
    # The larger distance has the smaller value.
    return torch.minimum(down[:, None, :, None], across[:, None]).flatten(2).flatten(0, 1)


def gaussian_kernel(length: int, std: float, device: torch.device | None = None) -> Tensor:
    """A Gaussian at ``6 std + 1`` integers around zero, or at ``length`` of them if that is less; one more if even."""
    size = min(length, int(6 * std + 1))
    offsets = torch.arange(size + (size + 1) % 2, device=device) - size // 2
    return torch.exp(-offsets.square() / (2 * std**2))


def connected(labels: Tensor, connectivity: str) -> Tensor:
    """Finds the pairs of patches that have one label on the way from the one to the other.

    The patches on the way from i to j are at ``i (1 - t) + j t`` with ``t = k / S``, rounded half to even, for k up to
    the (Chebyshev) distance of i and j. S is that distance for the full path, the largest of all distances for the
    partial one. The partial path is that of the original, float32 rounding included: about half-way between two
    patches it decides which of them is on the way.

    Args:
        labels: (..., h, w).
        connectivity: ``'full'`` or ``'partial'``.

    Returns:
        (..., N, N) bool.
    """
    grid = (labels.shape[-2], labels.shape[-1])
    maps = labels.to(torch.int16)
    out = torch.ones(*labels.shape[:-2], *grid, *grid, dtype=torch.bool, device=labels.device)
    for rows, columns in _ways(grid, connectivity, str(labels.device)):
        of_rows = maps[..., rows, :]
        way = of_rows.gather(-1, columns[:, None].expand(*of_rows.shape[:-1], -1))
        same = way.amin(-3) == way.amax(-3)
        out[..., rows[0, :, None], columns[0], rows[-1, :, None], columns[-1]] = same
    return out.flatten(-4, -3).flatten(-2)


@kept_per_shape(64)
def _ways(grid: tuple[int, int], connectivity: str, device: str) -> list[tuple[Tensor, Tensor]]:
    """The ways between all patches of a grid, by their length. Args: as for :func:`connected`.

    A point on the way has the row that follows from the rows of both ends, and the column that follows from their
    columns. So the ways of one length are products: of rows at that distance with columns at most as far apart, and of
    columns at that distance with nearer rows.

    Returns:
        For each product (K, P) rows on the way between P pairs of rows and (K, P') columns between P' pairs of columns,
        from the first patch to the last.
    """
    longest = max(grid) - 1
    times = torch.linspace(0, 1, longest + 1)
    pairs = [np.indices((side, side)).reshape(2, -1) for side in grid]
    apart = [abs(stop - start) for start, stop in pairs]

    def on_the_way(axis: int, chosen: np.ndarray, length: int) -> Tensor:
        start, stop = torch.from_numpy(pairs[axis][:, chosen])
        steps = torch.arange(1, length + 1)[:, None]
        if connectivity == 'full':
            # One division of integers: points half-way between two patches are exact.
            points = (start * length + (stop - start) * steps) / length
        else:
            points = start * (1 - times[steps]) + stop * times[steps]
        return to_device(torch.cat((start[None], points.round().long(), stop[None])), device)

    ways = []
    for length in range(1, longest + 1):
        for down, across in ((apart[0] == length, apart[1] <= length), (apart[0] < length, apart[1] == length)):
            ways.append((on_the_way(0, down, length), on_the_way(1, across, length)))
    return [(rows, columns) for rows, columns in ways if rows.numel() and columns.numel()]
