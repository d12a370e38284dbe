"""Lookup against the prototypes and late fusion with the host's log-probabilities (steps 5 to 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ..options import NotNegative, Share, check_fields
from .bilinear import Resized, UpsampledNorm
from .scores import ARGMAX, ScoreMap

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
    """

    alpha: Share = 0.5
    lambda_: NotNegative = 5.0
    center: bool = True
    decision: Literal['host', 'argmax'] = 'host'

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def beta(self) -> float:
        return (1 - self.alpha) * self.lambda_


@dataclass(frozen=True)
class Prototypes:
    """One unit vector per covered class.

    Args:
        vectors: (C, D) float64, rows of zeros for classes that are not covered.
        covered: (C,) bool.
    """

    vectors: Tensor
    covered: Tensor

    def to(self, device: torch.device | str) -> Prototypes:
        return Prototypes(self.vectors.to(device), self.covered.to(device))

    def centered(self) -> Tensor:
        """(C, D) prototypes minus their mean over the covered classes, zero outside them.

        Centering the prototypes once is the same as centering the cosines of every pixel.
        """
        if not self.covered.any():
            return self.vectors
        mean = self.vectors[self.covered].mean(0)
        return torch.where(self.covered[:, None], self.vectors - mean, 0)


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
        self.classes = prototypes.covered.to(phi.device).nonzero()[:, 0]
        vectors = prototypes.centered() if center else prototypes.vectors
        vectors = vectors.to(phi.device, torch.float32)[self.classes]
        # The host may run under autocast; cosines in half precision would be too coarse to center.
        with torch.autocast(phi.device.type, enabled=False):
            products = torch.einsum('cd,dhw->chw', vectors, phi.detach().float())
        self.cosines = Resized(products, size)
        self.norm = norm or UpsampledNorm(phi, size)

    @property
    def empty(self) -> bool:
        return self.classes.numel() == 0

    def band(self, top: int, bottom: int) -> Tensor:
        """Cosines of rows ``top`` to ``bottom``: (C, rows, W), zero for classes that are not covered."""
        shape = (self.num_classes, bottom - top, self.cosines.size[1])
        out = torch.zeros(shape, dtype=torch.float32, device=self.cosines.device)
        self.add_to(out, top, bottom, 1.0)
        return out

    def add_to(self, log: Tensor, top: int, bottom: int, beta: float) -> None:
        """Adds ``beta`` times the band to ``log`` (C, rows, W) in place."""
        if self.empty or beta == 0:
            return
        scale = beta / self.norm.rows(top, bottom).clamp_(min=_EPS)
        cosines = self.cosines.rows(top, bottom)
        if len(self.classes) == self.num_classes:
            log.addcmul_(cosines, scale)
        else:
            log.index_add_(0, self.classes, cosines * scale)


class FusedScores(ScoreMap):
    """A host's ScoreMap with the lookup added: what TPA decides on.

    Args:
        host: The host's scores.
        lookup: The image's lookup.
        fusion: Weights and rule.
    """

    def __init__(self, host: ScoreMap, lookup: Lookup, fusion: Fusion) -> None:
        if lookup.num_classes != host.num_classes:
            raise ValueError(f'the bank has {lookup.num_classes} classes, the host {host.num_classes}')
        self.host, self.lookup, self.fusion = host, lookup, fusion
        self.num_classes, self.size, self.channels = host.num_classes, host.size, host.channels
        self.device, self.source = host.device, host
        adds_nothing = lookup.empty or fusion.beta == 0
        self.rule = host.rule if fusion.decision == 'host' or adds_nothing else ARGMAX

    def log_and_mass(self, top: int, bottom: int, with_mass: bool) -> tuple[Tensor, Tensor | None]:
        log, mass = self.host.log_and_mass(top, bottom, with_mass)
        self.lookup.add_to(log, top, bottom, self.fusion.beta)
        return log, mass
