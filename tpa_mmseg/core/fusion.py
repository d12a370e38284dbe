"""Lookup against the prototypes and late fusion with the host's log-probabilities (steps 5 to 7)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import torch
from torch import Tensor

from ..options import NotNegative, Share, check_fields
from .bilinear import Resized
from .centered import CenteredLookup, Consistency
from .decision import ARGMAX
from .given import given
from .norm import UpsampledNorm
from .scores import ScoreMap
from .sweep import sweep_labels

# F.normalize's own guard against a zero feature.
_EPS = 1e-12


@dataclass(frozen=True)
class Fusion:
    """``l = log p + beta q~`` with ``beta = (1 - alpha) * lambda_``.

    Args:
        alpha: Share of the host, between 0 and 1.
        lambda_: The paper's lambda: the weight of the cosines beside log-probabilities.
        center: Subtract the mean over the covered classes from the cosines (step 6).
        decision: ``'host'``: labels by the host's rule, applied to ``softmax(l) * mass``; or plain ``'argmax'``.
        consistent: Ours, not the paper's: True, or constants of :class:`Consistency`, adds a second lookup with a
            weight that follows from the pool (docs/method.md).
    """

    alpha: Share = 0.5
    lambda_: NotNegative = 5.0
    center: bool = True
    decision: Literal['host', 'argmax'] = 'host'
    consistent: bool | Annotated[dict, Consistency] = False

    def __post_init__(self) -> None:
        check_fields(self)
        if isinstance(self.consistent, Mapping):
            object.__setattr__(self, 'consistent', Consistency(**self.consistent))

    @property
    def beta(self) -> float:
        return (1 - self.alpha) * self.lambda_

    @property
    def consistency(self) -> Consistency:
        """Constants of the diagnosis, whether or not the second lookup is added."""
        return self.consistent if isinstance(self.consistent, Consistency) else Consistency()


@dataclass(frozen=True)
class Prototypes:
    """One unit vector per covered class.

    Args:
        vectors: (C, D) float64, rows of zeros for classes that are not covered.
        covered: (C,) bool.
        classes: Numbers of the covered classes, ascending. Default: read from ``covered`` once, so that no image has
            to wait for a GPU to know them.
    """

    vectors: Tensor
    covered: Tensor
    classes: tuple[int, ...] | None = None
    _kept: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.classes is None:
            object.__setattr__(self, 'classes', tuple(self.covered.nonzero()[:, 0].tolist()))

    def to(self, device: torch.device | str) -> Prototypes:
        return Prototypes(self.vectors.to(device), self.covered.to(device), self.classes)

    def index(self, device: torch.device) -> Tensor:
        """(n,) int64 numbers of the covered classes, on a device."""
        return self._keep(('index', device), lambda: torch.tensor(self.classes, dtype=torch.int64, device=device))

    def looked_up(self, center: bool, device: torch.device) -> Tensor:
        """(n, D) float32 vectors of the covered classes on a device, minus their mean if centered.

        Centering the prototypes once is the same as centering the cosines of every pixel.
        """

        def make() -> Tensor:
            vectors = self.vectors.index_select(0, self.index(self.vectors.device))
            return (vectors.sub_(vectors.mean(0)) if center else vectors).to(device, torch.float32)

        return self._keep((center, device), make)

    def _keep(self, key: tuple, make: Callable[[], Tensor]) -> Tensor:
        """What does not depend on the image is computed once."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]


class Lookup:
    """The (centered) cosines of one image's upsampled features with the prototypes, band by band.

    The product with the prototypes runs on the patch grid and its C channels are upsampled, not the D features.

    Args:
        prototypes: What to look up.
        phi: (D, h, w) patch features of the image, of any float type.
        size: Height and width of the image.
        center: Subtract the mean over the covered classes.
        norm: ``|Up(phi)|``, where it is known already.
    """

    def __init__(
        self,
        prototypes: Prototypes,
        phi: Tensor,
        size: tuple[int, int],
        center: bool = True,
        norm: UpsampledNorm | None = None,
    ) -> None:
        self.num_classes = prototypes.vectors.shape[0]
        self.prototypes = prototypes
        vectors = prototypes.looked_up(center, phi.device)
        # The host may run under autocast; cosines in half precision would be too coarse to center.
        with torch.autocast(phi.device.type, enabled=False):
            products = vectors @ phi.detach().float().flatten(1)
        self.cosines = Resized(products.unflatten(1, phi.shape[1:]), size)
        self.norm = norm or UpsampledNorm(phi, size)

    @property
    def empty(self) -> bool:
        return not self.prototypes.classes

    def band(self, top: int, bottom: int) -> Tensor:
        """Cosines of rows ``top`` to ``bottom``: (C, rows, W), zero for classes that are not covered."""
        shape = (self.num_classes, bottom - top, self.cosines.size[1])
        out = torch.zeros(shape, dtype=torch.float32, device=self.cosines.device)
        self.add_to(out, top, 1.0)
        return out

    def scale(self, top: int, bottom: int, beta: float) -> Tensor:
        """What turns products with the prototypes into ``beta`` times cosines: (bottom - top, W)."""
        return beta / self.norm.rows(top, bottom).clamp(min=_EPS)

    def add_to(self, log: Tensor, top: int, beta: float, first: int = 0) -> None:
        """Adds ``beta`` times the cosines of some classes to a band, in place.

        Args:
            log: (C', rows, W) of the classes from ``first`` on.
            top: The band's first row.
            beta: Weight of the cosines.
            first: The first class.
        """
        covered = given(self.prototypes.classes)
        start, stop = bisect_left(covered, first), bisect_left(covered, first + len(log))
        if start == stop or beta == 0:
            return
        bottom = top + log.shape[1]
        scale = self.scale(top, bottom, beta)
        cosines = given(self.cosines.channels(start, stop)).rows(top, bottom)
        if stop - start == len(log):
            log.addcmul_(cosines, scale)
        else:
            index = self.prototypes.index(log.device)[start:stop]
            log.index_add_(0, index - first if first else index, cosines * scale)


class FusedScores(ScoreMap):
    """A host's ScoreMap with the lookup added: what TPA decides on.

    Args:
        host: The host's scores.
        lookup: The image's lookup.
        fusion: Weights and rule.
        second: The second lookup of consistent TPA.
    """

    def __init__(self, host: ScoreMap, lookup: Lookup, fusion: Fusion, second: CenteredLookup | None = None) -> None:
        if lookup.num_classes != host.num_classes:
            raise ValueError(f'the bank has {lookup.num_classes} classes, the host {host.num_classes}')
        self.host, self.lookup, self.fusion, self.second = host, lookup, fusion, second
        self.num_classes, self.size, self.channels = host.num_classes, host.size, host.channels
        self.device, self.source, self.alarms = host.device, host, host.alarms
        self.adds_nothing = lookup.empty or (fusion.beta == 0 and second is None)
        self.rule = host.rule if fusion.decision == 'host' or self.adds_nothing else ARGMAX

    def log_and_mass(self, top: int, bottom: int, with_mass: bool) -> tuple[Tensor, Tensor | None]:
        log, mass = self.host.log_and_mass(top, bottom, with_mass)
        self.add_to(log, top)
        return log, mass

    def add_to(self, log: Tensor, top: int, first: int = 0) -> None:
        """Adds the lookup to a band of the host's log-probabilities. Args: as for :meth:`Lookup.add_to`."""
        self.lookup.add_to(log, top, self.fusion.beta, first)
        if self.second is not None:
            self.second.add_to(log, top, first)

    def labels(self, dtype: torch.dtype = torch.int64) -> Tensor:
        return sweep_labels(self.host, [self], dtype)[0]
