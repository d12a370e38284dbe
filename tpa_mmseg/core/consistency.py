"""Consistent TPA: a second lookup, and the label-free rule that says how much of it to add. Ours, not the paper's.

A host's labels *follow the image* if points that look alike to the encoder have the same label. Where they do, the
paper's fixed weight fits; where they do not, a second lookup around the center of the feature space helps. Everything
here is a sum over images, so that it is the same on any number of machines.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .anchors import patch_probabilities
from .evidence import Evidence
from .fusion import Fusion, Prototypes
from .scores import ScoreMap, best_class

#: The weights at which consistency is measured: 0, then half octaves from 0.25 to 64.
WEIGHTS = (0.0, *(0.25 * 2 ** (step / 2) for step in range(17)))
# Bytes of one block of similarities between the points of an image.
_BLOCK_BYTES = 32 << 20


@dataclass(frozen=True)
class Consistency:
    """Constants of the rule. They were fixed on photographs (docs/method.md).

    Args:
        gate: A class is open in an image if the host gives it more than this share of the pixels.
        eta: Labels are consistent enough at this share of the highest consistency seen.
        most: Largest weight, in units of the host's own spread, of a bank that two halves of the pool agree on.
        neighbors: How many of the most similar points of an image a point is compared with.
        distance: How far away they must be, in image coordinates from 0 to 1.
    """

    gate: float = 0.005
    eta: float = 0.85
    most: float = 1.6
    neighbors: int = 5
    distance: float = 0.12

    def __post_init__(self) -> None:
        for name in ('gate', 'eta', 'distance'):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f'consistency.{name} must be between 0 and 1, not {getattr(self, name)}')
        if self.neighbors < 1 or self.most < 0:
            raise ValueError('consistency.neighbors must be at least 1 and consistency.most at least 0')


@dataclass(frozen=True)
class CenteredPrototypes:
    """The directions of class means as seen from the center of the feature space.

    Args:
        vectors: (C, D) float64 unit vectors, zero for classes that are not covered.
        covered: (C,) bool.
        center: (D,) float64.
        agreement: (C,) float64 cosine between the directions of two halves of the pool; 0 if one has too few anchors.
    """

    vectors: Tensor
    covered: Tensor
    center: Tensor
    agreement: Tensor

    @classmethod
    def of(cls, half_sums: Tensor, half_counts: Tensor, covered: Tensor, k_min: int) -> CenteredPrototypes:
        """From the two halves of a bank.

        Args:
            half_sums: (2, C, D) float64 sums of anchor features.
            half_counts: (2, C) int64 numbers of anchors.
            covered: (C,) bool.
            k_min: Fewer anchors in a half say nothing about a class.
        """
        counts = half_counts.sum(0).double()
        means = half_sums.sum(0) / counts.clamp(min=1)[:, None]
        weights = counts.sqrt() * covered
        center = (weights @ means) / weights.sum().clamp(min=1)
        vectors = F.normalize(means - center, dim=1) * covered[:, None]
        first, second = half_sums / half_counts.clamp(min=1)[..., None] - center
        enough = covered & (half_counts >= max(1, k_min)).all(0)
        return cls(vectors, covered, center, F.cosine_similarity(first, second, dim=1) * enough)

    @property
    def reproducibility(self) -> Tensor:
        """rho: 0 to 1, how well a bank of this size is expected to agree with another one (Spearman-Brown)."""
        expected = (2 * self.agreement / (1 + self.agreement).clamp(min=1e-12)).clamp(0, 1)
        return expected.sum() / self.covered.sum().clamp(min=1)

    def to(self, device: torch.device | str) -> CenteredPrototypes:
        return CenteredPrototypes(*(part.to(device) for part in vars(self).values()))

    def cosines(self, phi: Tensor) -> Tensor:
        """(C, n) float32 cosines of (D, n) features around the center, zero for classes that are not covered."""
        return (self.vectors @ F.normalize(phi.double() - self.center[:, None], dim=0)).float()


def open_classes(scores: ScoreMap, covered: Tensor, gate: float) -> Tensor:
    """(C,) bool: covered classes to which the host gives more than a share ``gate`` of the pixels."""
    count = torch.zeros(scores.num_classes, dtype=torch.int64, device=scores.device)
    for top, bottom in scores.ranges():
        label = best_class(scores.log_band(top, bottom))[1].flatten()
        count.index_add_(0, label, torch.ones_like(label))
    return covered.to(scores.device) & (count > gate * scores.size[0] * scores.size[1])


def gated(cosines: Tensor, covered: Tensor, opened: Tensor) -> Tensor:
    """The cosines of open classes, and for every other class the lowest one of any covered class.

    Args:
        cosines: (C, ...) around the center.
        covered, opened: (C,) bool.
    """
    shape = (-1,) + (1,) * (cosines.dim() - 1)
    lowest = cosines.masked_fill(~covered.view(shape), float('inf')).amin(0, keepdim=True)
    return torch.where(opened.view(shape), cosines, lowest)


class ConsistencySums:
    """What the rule needs of the pool: one vector of sums over images.

    Args:
        prototypes: The paper's, of the whole bank.
        centered: Those around the center.
        fusion: The paper's term.
        constants: Of the rule.

    Attributes:
        values: float64: points; spread of log p and of the centered cosines; then the agreement of labels and the
            agreement expected by chance, each for every weight in :data:`WEIGHTS` and for the centered cosines alone.
    """

    def __init__(
        self, prototypes: Prototypes, centered: CenteredPrototypes, fusion: Fusion, constants: Consistency
    ) -> None:
        self.prototypes, self.centered, self.fusion, self.constants = prototypes, centered, fusion, constants
        size = 3 + 2 * (len(WEIGHTS) + 1)
        self.values = torch.zeros(size, dtype=torch.float64, device=centered.vectors.device)

    def add(self, evidence: Evidence, encoder: str) -> None:
        """Add one image of the pool, on its patch grid."""
        phi = evidence.features[encoder].detach().float()
        grid = tuple(phi.shape[1:])
        log = patch_probabilities(evidence.scores, grid).clamp_(min=torch.finfo(torch.float32).tiny).log_().flatten(1)
        phi = phi.flatten(1)
        # A point without a distribution has no label of its own.
        known = log.isfinite().all(0)
        near, valid = self._neighbors(phi, grid, known)
        known = known & valid.any(1)
        second = self.centered.cosines(phi)
        opened = open_classes(evidence.scores, self.centered.covered, self.constants.gate)
        second = gated(second, self.centered.covered, opened)
        fused = log + self.fusion.beta * self._first(phi)
        fields = [(fused + weight * second).argmax(0) for weight in WEIGHTS]
        fields.append(second.masked_fill(~opened[:, None], float('-inf')).argmax(0))
        agreement = [self._agreement(field, near, valid, known) for field in fields]
        chance = [_chance(field, known, len(log)) for field in fields]
        spreads = [part.std(0)[known].sum() for part in (log, second)]
        parts = [known.sum(), *spreads, *agreement, *chance]
        self.values += torch.stack([part.double() for part in parts])

    def _first(self, phi: Tensor) -> Tensor:
        """(C, n) the paper's lookup at patches."""
        vectors = self.prototypes.centered() if self.fusion.center else self.prototypes.vectors
        return vectors.to(phi.device, torch.float32) @ F.normalize(phi, dim=0)

    def _neighbors(self, phi: Tensor, grid: tuple[int, int], known: Tensor) -> tuple[Tensor, Tensor]:
        """(n, k) the most similar points of each point that are far enough away, and whether there is such a point."""
        unit = F.normalize(phi - self.centered.center.to(phi.dtype)[:, None], dim=0)
        count = unit.shape[1]
        rows, columns = ((torch.arange(length, device=phi.device) + 0.5) / length for length in grid)
        place = torch.cartesian_prod(rows, columns)
        found = []
        for block in torch.arange(count, device=phi.device).split(max(1, _BLOCK_BYTES // (4 * count))):
            too_near = torch.cdist(place[block], place) <= self.constants.distance
            similar = (unit[:, block].T @ unit).masked_fill_(too_near | ~known, float('-inf'))
            found.append(similar.topk(min(self.constants.neighbors, count), dim=1))
        values, indices = (torch.cat(parts) for parts in zip(*found, strict=True))
        return indices, values.isfinite()

    @staticmethod
    def _agreement(field: Tensor, near: Tensor, valid: Tensor, known: Tensor) -> Tensor:
        """Sum over points of the share of their neighbors that have the same label."""
        same = (field[near] == field[:, None]) & valid
        return (same.sum(1) / valid.sum(1).clamp(min=1))[known].double().sum()

    def diagnosis(self) -> Diagnosis:
        """What follows from the sums of the whole pool."""
        return _diagnose(self.values.cpu(), float(self.centered.reproducibility), self.constants)


def _chance(field: Tensor, known: Tensor, num_classes: int) -> Tensor:
    """Agreement that labels drawn by their shares in the image would have."""
    points = known.sum()
    count = torch.zeros(num_classes, dtype=torch.float64, device=field.device)
    count.index_add_(0, field, known.double())
    return count.square().sum() / points.clamp(min=1)


@dataclass(frozen=True)
class Diagnosis:
    """Whether a host's labels follow the image, and how much of the second lookup to add.

    Args:
        kappa_0: Consistency of the labels of the paper's TPA: 1 for perfect, about 0 for random ones.
        kappa_inf: The highest consistency seen: that of the prototypes alone, or of any weight.
        rho: How well a bank of this size reproduces itself, 0 to 1.
        unit: The weight at which the second lookup spreads as much as the host's log-probabilities.
        beta2: The weight of the second lookup; 0 leaves the paper's TPA as it is.
        points: Number of points that were compared.
    """

    kappa_0: float
    kappa_inf: float
    rho: float
    unit: float
    beta2: float
    points: int

    @property
    def share(self) -> float:
        """How consistent the labels are, as a share of what the prototypes reach."""
        return self.kappa_0 / self.kappa_inf if self.kappa_inf > 0 else 1.0

    def describe(self) -> str:
        """Returns one sentence for people."""
        if self.points == 0:
            return 'Whether labels follow the image is not known: no point of the pool has anything to compare with.'
        if self.beta2 == 0:
            return f"Labels follow the image ({self.share:.2f} of 1): TPA's fixed weight fits."
        return (
            f'Labels do not follow the image ({self.share:.2f} of 1): a larger weight may help; '
            'see "Consistent TPA" in docs/method.md.'
        )


def _diagnose(values: Tensor, rho: float, constants: Consistency) -> Diagnosis:
    points, spread_log, spread_second = values[:3].tolist()
    agreement, chance = values[3:].view(2, -1)
    kappa = ((agreement - chance) / (points - chance)).nan_to_num(0.0).tolist()
    if points == 0:
        return Diagnosis(0.0, 0.0, rho, 0.0, 0.0, 0)
    unit = spread_log / spread_second if spread_second > 0 else 0.0
    within = [value for weight, value in zip(WEIGHTS, kappa, strict=False) if weight <= constants.most * unit]
    highest = max(*within, kappa[-1])
    needed = _first_weight(kappa[:-1], constants.eta * highest, constants.most * unit)
    beta2 = min(needed, constants.most * rho**2 * unit)
    return Diagnosis(kappa[0], highest, rho, unit, beta2, int(points))


def _first_weight(kappa: list[float], target: float, most: float) -> float:
    """The smallest weight, between those measured by linear interpolation, whose labels are consistent enough."""
    if kappa[0] >= target:
        return 0.0
    for low, high, before, after in zip(WEIGHTS, WEIGHTS[1:], kappa, kappa[1:], strict=False):
        if after >= target:
            return min(most, low + (high - low) * (target - before) / (after - before))
    return most
