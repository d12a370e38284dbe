"""The second lookup of consistent TPA: around the center of the feature space. Ours, not the paper's."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from ..options import AtLeastOne, NotNegative, Share, check_fields
from .bilinear import Resized, band_ranges
from .given import given
from .norm import UpsampledNorm

_EPS = 1e-12
# Share of a squared norm that float32 may lose when the center is subtracted.
_ROUNDING = 1e-6
# Classes whose lowest product is found at once.
_AT_ONCE = 128


@dataclass(frozen=True)
class Consistency:
    """Constants of consistent TPA. They were fixed on photographs (docs/method.md).

    Args:
        gate: A class is open in an image if the host gives it more than this share of the pixels; 0 opens all classes.
        eta: Labels are consistent enough at this share of the highest consistency seen.
        most: Largest weight of the second lookup, in units of the host's own spread.
        neighbors: How many of the most similar points of an image a point is compared with.
        distance: How far away they must be, in image coordinates from 0 to 1.
        center: Look up around the center of the feature space, not around zero.
        cap: Let the weight be no larger than the agreement of the bank's halves allows.
        beta2: A fixed weight instead of the one that follows from the pool.
    """

    gate: Share = 0.005
    eta: Share = 0.85
    most: NotNegative = 1.6
    neighbors: AtLeastOne = 5
    distance: Share = 0.12
    center: bool = True
    cap: bool = True
    beta2: NotNegative | None = None

    def __post_init__(self) -> None:
        check_fields(self)


def open_classes(counts: Tensor, pixels: int, gate: float) -> Tensor:
    """(C,) bool. Args: counts: (C,) pixels that the host gives each class; pixels of the image; gate: least share."""
    return counts > gate * pixels if gate > 0 else torch.ones_like(counts, dtype=torch.bool)


@dataclass(frozen=True)
class CenteredPrototypes:
    """The directions of class means as seen from the center of the feature space.

    Args:
        vectors: (C, D) float64 unit vectors, zero for classes that are not covered.
        covered: (C,) bool.
        center: (D,) float64.
        agreement: (C,) float64 cosine between the directions of two halves of the pool; 0 if one has too few anchors.
        classes: Numbers of the covered classes, ascending.
    """

    vectors: Tensor
    covered: Tensor
    center: Tensor
    agreement: Tensor
    classes: tuple[int, ...]

    @classmethod
    def of(cls, parts: Iterable[Tensor], covered: Tensor, k_min: int, around_center: bool = True) -> CenteredPrototypes:
        """From a bank and one half of it.

        Args:
            parts: (C, D) float64 sums of anchor features, (C,) int64 numbers of anchors, and both of one half.
            covered: (C,) bool.
            k_min: Fewer anchors in a half say nothing about a class.
            around_center: False looks up around zero.
        """
        sums, counts, half_sums, half_counts = parts
        means = _means(sums, counts)
        weights = counts.double().sqrt() * covered
        center = (weights @ means) / weights.sum().clamp(min=1) * around_center
        vectors = F.normalize(means - center, dim=1) * covered[:, None]
        first, second = _means(half_sums, half_counts), _means(sums - half_sums, counts - half_counts)
        enough = covered & (torch.minimum(half_counts, counts - half_counts) >= max(1, k_min))
        agreement = F.cosine_similarity(first - center, second - center, dim=1) * enough
        return cls(vectors, covered, center, agreement, tuple(covered.nonzero()[:, 0].tolist()))

    @property
    def reproducibility(self) -> float:
        """rho: 0 to 1, how well a bank of this size is expected to agree with another one (Spearman-Brown)."""
        expected = (2 * self.agreement / (1 + self.agreement).clamp(min=_EPS)).clamp(0, 1)
        return float(expected.sum() / self.covered.sum().clamp(min=1))

    def to(self, device: torch.device | str) -> CenteredPrototypes:
        vectors, covered = self.vectors.to(device), self.covered.to(device)
        return CenteredPrototypes(vectors, covered, self.center.to(device), self.agreement.to(device), self.classes)

    def cosines(self, phi: Tensor) -> Tensor:
        """(C, n) float32 cosines of (D, n) features around the center, zero for classes that are not covered."""
        return (self.vectors @ F.normalize(phi.double() - self.center[:, None], dim=0)).float()


def _means(sums: Tensor, counts: Tensor) -> Tensor:
    return sums / counts.clamp(min=1)[:, None]


@dataclass(frozen=True)
class SecondTerm:
    """What consistent TPA adds to the paper's.

    Args:
        prototypes: What is looked up.
        beta2: Weight, from the bank's diagnosis.
        gate: Share of the host's pixels beyond which a class is open.
    """

    prototypes: CenteredPrototypes
    beta2: float
    gate: float
    _kept: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def looked_up(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """(n + 1, D) and (n + 1,) that map features to products with the covered classes and, last, with the center;
        and (n,) their numbers."""
        if device not in self._kept:
            found = self.prototypes.to(device)
            index = torch.tensor(found.classes, dtype=torch.int64, device=device)
            vectors = torch.cat((found.vectors.index_select(0, index), found.center[None]))
            # Of the center, so that |phi - c0|^2 = |phi|^2 - 2 (phi . c0 - |c0|^2 / 2).
            shift = vectors @ found.center
            shift[-1] /= 2
            self._kept[device] = vectors.float(), shift.float(), index
        return self._kept[device]


class CenteredLookup:
    """Cosines of one image's upsampled features around the center, for its open classes, band by band.

    Every other class has the lowest cosine of any covered class. As a constant per pixel changes no label, that lowest
    cosine is taken from the open classes instead.

    Args:
        term: What to look up, and its weight.
        phi: (D, h, w) patch features, of any float type.
        norm: ``|Up(phi)|``.
        counts: (C,) number of pixels that the host gives each class.
    """

    def __init__(self, term: SecondTerm, phi: Tensor, norm: UpsampledNorm, counts: Tensor) -> None:
        vectors, shift, index = term.looked_up(phi.device)
        with torch.autocast(phi.device.type, enabled=False):
            products = vectors @ phi.detach().float().flatten(1) - shift[:, None]
        products = products.unflatten(1, phi.shape[1:])
        products, along_center = products[:-1], Resized(products[-1:], norm.size)
        opened = open_classes(counts, norm.size[0] * norm.size[1], term.gate).index_select(0, index)
        # A GPU is not asked which classes are open: it adds zero to the others.
        asked = phi.device.type == 'cpu'
        self.opened = None if asked else opened[:, None, None]
        self.index = index[opened] if asked else index
        self.classes = tuple(self.index.tolist()) if asked else term.prototypes.classes
        self.products = Resized(products[opened] if asked else products, norm.size)
        if self.classes:
            # Maps of the whole image, not made band by band between others, which would push them out of the cache.
            self.scale = term.beta2 / _norm_around(norm.whole(), along_center)
            all_open = asked and len(self.classes) == len(counts)
            self.lowest = None if all_open else _lowest(products, norm.size).mul_(self.scale)

    def add_to(self, log: Tensor, top: int, first: int = 0) -> None:
        """Adds the weighted cosines to a band. Args: as for :meth:`Lookup.add_to`."""
        start, stop = (bisect_left(self.classes, label) for label in (first, first + len(log)))
        if start == stop:
            return
        band = slice(top, top + log.shape[1])
        products, scale = given(self.products.channels(start, stop)).rows(band.start, band.stop), self.scale[band]
        if self.lowest is None:
            log.addcmul_(products, scale)
            return
        added = torch.addcmul(-self.lowest[band], products, scale)
        if self.opened is not None:
            added *= self.opened[start:stop]
        log.index_add_(0, self.index[start:stop] - first, added)


def _norm_around(norm: Tensor, along_center: Resized) -> Tensor:
    """(H, W) of ``|Up(phi) - c0|``. Args: norm: (H, W) of ``|Up(phi)|``; along_center: ``phi . c0 - |c0|^2 / 2``."""
    squared = norm.square()
    # Of a feature at the center itself only the rounding would be left, which says nothing.
    least = squared.mul(_ROUNDING).clamp_(min=_EPS**2)
    return torch.maximum(squared.sub_(along_center.rows(0, len(norm))[0], alpha=2), least, out=squared).sqrt_()


def _lowest(products: Tensor, size: tuple[int, int]) -> Tensor:
    """(H, W) lowest of (n, h, w) products at every pixel."""
    lowest = torch.full(size, float('inf'), device=products.device)
    for part in products.split(_AT_ONCE):
        upsampled = Resized(part, size)
        for top, bottom in band_ranges(len(part), size, products.device):
            band = lowest[top:bottom]
            torch.minimum(band, upsampled.rows(top, bottom).amin(0), out=band)
    return lowest
