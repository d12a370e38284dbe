"""Adapter, one setting of TPA, and decide: everything that follows from the evidence of an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .anchors import AnchorRule
from .bank import PrototypeBank
from .centered import CenteredLookup, SecondTerm
from .decision import ARGMAX
from .evidence import ENCODER, Evidence
from .fusion import FusedScores, Fusion, Lookup, Prototypes
from .sweep import PLAIN, sweep_labels


@dataclass(frozen=True)
class Adapter:
    """One setting of TPA: what to look up, in which features, and how to fuse it.

    Args:
        prototypes: The prototypes of a bank. None: every image is its own pool.
        fusion: Weights and decision of the fusion.
        anchors: What an anchor is, where an image is its own pool.
        encoder: Name of the encoder whose features are looked up.
        second: What consistent TPA adds, if anything.
    """

    prototypes: Prototypes | None = None
    fusion: Fusion = Fusion()
    anchors: AnchorRule = AnchorRule()
    encoder: str = ENCODER
    second: SecondTerm | None = None

    def fuse(self, evidence: Evidence) -> FusedScores:
        """The host's scores of an image with the lookup added."""
        phi = evidence.features[self.encoder]
        prototypes = self.prototypes
        if prototypes is None:
            bank = PrototypeBank(evidence.scores.num_classes, phi.shape[0], self.anchors, phi.device, self.encoder)
            bank.add(evidence)
            prototypes = bank.prototypes()
        norm = evidence.norm(self.encoder)
        lookup = Lookup(prototypes, phi, evidence.scores.size, self.fusion.center, norm)
        second = None if self.second is None else CenteredLookup(self.second, phi, norm, evidence.class_counts())
        return FusedScores(evidence.scores, lookup, self.fusion, second)


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
    scores = evidence.scores
    if any(adapter.second is not None for adapter in adapters):
        # Which classes are open is known only after a sweep over the host's scores, which gives its labels as well.
        own, *plain = sweep_labels(scores, [None] if scores.rule == ARGMAX else [None, PLAIN], dtype)
        evidence.keep_counts(plain[0] if plain else own)
        adapted = sweep_labels(scores, [adapter.fuse(evidence) for adapter in adapters], dtype)
    else:
        own, *adapted = sweep_labels(scores, [None, *(adapter.fuse(evidence) for adapter in adapters)], dtype)
    evidence.alarms.check()
    return Labels(own, tuple(adapted))
