"""Diagnosis: do a host's labels follow the image, and how much of a second lookup do they need? Ours, not the paper's.

A host's labels *follow the image* if points that look alike to the encoder have the same label. Where they do, the
paper's fixed weight fits; where they do not, a second lookup around the center of the feature space helps. Everything
here is a sum over images, so that it is the same on any number of machines.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from .anchors import patch_probabilities
from .centered import CenteredPrototypes, Consistency, open_classes
from .evidence import Evidence
from .fusion import Fusion, Prototypes

#: The weights at which consistency is measured: 0, then half octaves from 0.25 to 64.
WEIGHTS = (0.0, *(0.25 * 2 ** (step / 2) for step in range(17)))
# Share of the largest weight below which the cap leaves nothing worth adding.
_TOO_LITTLE = 0.05
# Bytes of one block of similarities between the points of an image.
_BLOCK_BYTES = 32 << 20


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
        fusion: The paper's term, and the constants of the rule.

    Attributes:
        values: float64: points; spread of log p and of the centered cosines; then the agreement of labels and the
            agreement expected by chance, each for every weight in :data:`WEIGHTS` and for the centered cosines alone.
    """

    def __init__(self, prototypes: Prototypes, centered: CenteredPrototypes, fusion: Fusion) -> None:
        self.prototypes, self.centered, self.fusion = prototypes, centered, fusion
        self.constants = fusion.consistency
        self.values = torch.zeros(3 + 2 * (len(WEIGHTS) + 1), dtype=torch.float64, device=centered.vectors.device)

    def add(self, evidence: Evidence, encoder: str) -> None:
        """Add one image of the pool, on its patch grid."""
        if not self.centered.classes:
            return
        phi = evidence.features[encoder].detach().float()
        grid = phi.shape[1], phi.shape[2]
        log = patch_probabilities(evidence.scores, grid).clamp_(min=torch.finfo(torch.float32).tiny).log_().flatten(1)
        phi = phi.flatten(1)
        # A point without a distribution has no label of its own.
        known = log.isfinite().all(0)
        near, valid = self._neighbors(phi, grid, known)
        known = known & valid.any(1)
        second = self.centered.cosines(phi)
        pixels = evidence.scores.size[0] * evidence.scores.size[1]
        opened = self.centered.covered & open_classes(evidence.class_counts(), pixels, self.constants.gate)
        second = gated(second, self.centered.covered, opened)
        vectors, index = self.prototypes.looked_up(self.fusion.center, log.device), self.prototypes.index(log.device)
        fused = log.index_add(0, index, self.fusion.beta * (vectors @ F.normalize(phi, dim=0)))
        fields = [(fused + weight * second).argmax(0) for weight in WEIGHTS]
        fields.append(second.masked_fill(~opened[:, None], float('-inf')).argmax(0))
        agreement = [self._agreement(field, near, valid, known) for field in fields]
        chance = [_chance(field, known, len(log)) for field in fields]
        spreads = [part.std(0)[known].sum() for part in (log, second)]
        self.values += torch.stack([part.double() for part in (known.sum(), *spreads, *agreement, *chance)])

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
        rho, made_with = self.centered.reproducibility, measured_with(self.fusion)
        points, spread_log, spread_second = self.values[:3].tolist()
        if points == 0:
            return Diagnosis(0.0, 0.0, rho, 0.0, 0.0, 0, made_with)
        agreement, chance = self.values[3:].view(2, -1)
        kappa = ((agreement - chance) / (points - chance)).nan_to_num(0.0).tolist()
        unit = spread_log / spread_second if spread_second > 0 else 0.0
        most = self.constants.most * unit
        highest = max(kappa[-1], *(value for weight, value in zip(WEIGHTS, kappa, strict=False) if weight <= most))
        beta2 = _first_weight(kappa[:-1], self.constants.eta * highest, most)
        if self.constants.cap:
            beta2 = min(beta2, most * rho**2)
        if self.constants.beta2 is not None:
            beta2 = self.constants.beta2
        return Diagnosis(kappa[0], highest, rho, unit, beta2, int(points), made_with)


def measured_with(fusion: Fusion) -> dict:
    """What a diagnosis depends on besides the bank."""
    return {'beta': fusion.beta, 'centered_cosines': fusion.center, **asdict(fusion.consistency)}


def _chance(field: Tensor, known: Tensor, num_classes: int) -> Tensor:
    """Agreement that labels drawn by their shares in the image would have."""
    count = torch.zeros(num_classes, dtype=torch.float64, device=field.device)
    count.index_add_(0, field, known.double())
    return count.square().sum() / known.sum().clamp(min=1)


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
        made_with: Settings of the fusion that it holds for, see :func:`measured_with`.
    """

    kappa_0: float
    kappa_inf: float
    rho: float
    unit: float
    beta2: float
    points: int
    made_with: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        # It may come from a file.
        numbers = [value for name, value in vars(self).items() if name != 'made_with']
        numbers += [value for value in dict(self.made_with).values() if value is not None]
        if not all(isinstance(value, (int, float)) and math.isfinite(value) for value in numbers):
            raise ValueError('the diagnosis has other values than numbers')

    @property
    def share(self) -> float:
        """How consistent the labels are, as a share of what the prototypes reach."""
        return self.kappa_0 / self.kappa_inf if self.kappa_inf > 0 else 1.0

    def describe(self) -> str:
        """Returns one sentence for people."""
        if self.points == 0:
            return 'Whether labels follow the image is not known: no point of the pool has anything to compare with.'
        if self.share >= self.made_with.get('eta', Consistency().eta):
            return f"Labels follow the image ({self.share:.2f} of 1): TPA's fixed weight fits."
        told = f'Labels do not follow the image ({self.share:.2f} of 1)'
        if self.rho**2 < _TOO_LITTLE:
            return f'{told}, but halves of the pool disagree: a larger pool may help.'
        return f'{told}: a larger weight may help; see "Consistent TPA" in docs/method.md.'


def _first_weight(kappa: list[float], target: float, most: float) -> float:
    """The smallest weight, between those measured by linear interpolation, whose labels are consistent enough."""
    # Where not even the prototypes are consistent there is nothing to strive for.
    if target <= 0 or kappa[0] >= target:
        return 0.0
    for low, high, before, after in zip(WEIGHTS, WEIGHTS[1:], kappa, kappa[1:], strict=False):
        if after >= target:
            return min(most, low + (high - low) * (target - before) / (after - before))
    return most
