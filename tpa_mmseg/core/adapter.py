"""Adapter, one setting of TPA, and decide: everything that follows from the evidence of an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .anchors import AnchorRule
from .bank import PrototypeBank
from .evidence import ENCODER, Evidence
from .fusion import FusedScores, Fusion, Lookup, Prototypes
from .sweep import sweep_labels


@dataclass(frozen=True)
class Adapter:
    """One setting of TPA: what to look up, in which features, and how to fuse it.

    Args:
        prototypes: The prototypes of a bank. None: every image is its own pool.
        fusion: Weights and decision of the fusion.
        anchors: What an anchor is, where an image is its own pool.
        encoder: Name of the encoder whose features are looked up.
    """

    prototypes: Prototypes | None = None
    fusion: Fusion = Fusion()
    anchors: AnchorRule = AnchorRule()
    encoder: str = ENCODER

    def fuse(self, evidence: Evidence) -> FusedScores:
        """The host's scores of an image with the lookup added."""
        phi = evidence.features[self.encoder]
        prototypes = self.prototypes
        if prototypes is None:
            bank = PrototypeBank(evidence.scores.num_classes, phi.shape[0], self.anchors, phi.device, self.encoder)
            bank.add(evidence)
            prototypes = bank.prototypes()
        lookup = Lookup(prototypes, phi, evidence.scores.size, self.fusion.center, evidence.norm(self.encoder))
        return FusedScores(evidence.scores, lookup, self.fusion)


class Labels(NamedTuple):
    """The labels of one image."""

    host: Tensor  #: (H, W) by the host alone
    adapted: tuple[Tensor, ...]  #: (H, W) by each adapter, in their order


def decide(evidence: Evidence, adapters: Sequence[Adapter] = (), dtype: torch.dtype = torch.int64) -> Labels:
    """Labels of the host alone and of every adapter, from one sweep over the host's scores.

    Args:
        evidence: Scores and features of the image.
        adapters: Any number of settings.
        dtype: Integer type of the labels; uint8 takes an eighth of the memory.

    Raises:
        TPAError: An alarm of the evidence, after the last kernel.
    """
    fused = [adapter.fuse(evidence) for adapter in adapters]
    own, *adapted = sweep_labels(evidence.scores, [None, *fused], dtype)
    evidence.alarms.check()
    return Labels(own, tuple(adapted))
