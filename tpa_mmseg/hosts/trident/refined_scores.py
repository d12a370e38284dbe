"""Class probabilities after SAM redrew regions, and the labels that the host decides by the refined masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...core import DecisionRule, ScoreMap
from ...core.decision import best_class


@dataclass(frozen=True, eq=False)
class RefinedRule(DecisionRule):
    """The host's decision rule outside of refined masks, and its own labels inside.

    Inside refined masks the host decides before its score map is complete, so its labels do not follow from the map.
    For fused scores this means: the host's label stands as long as the best class is that of the host's own scores; if
    the lookup makes another class the best, that class is the label. Without a lookup the labels are therefore the
    host's. ``prob_thd`` never applies inside refined masks.

    Args:
        own: (H, W) int64 label of the pixels in refined masks, -1 elsewhere.
        winner: (H, W) int64 best class of the host's scores there.
    """

    own: Tensor | None = None
    winner: Tensor | None = None

    def finish(self, labels: Tensor, best: Tensor | None) -> Tensor:
        refined = self.own >= 0
        if best is not None:
            labels = labels.masked_fill((best < self.prob_thd) & ~refined, 0)
        return torch.where(refined & (labels == self.winner), self.own, labels)


class RefinedScores(ScoreMap):
    """Refined scores inside masks, divided by their sum, and coarse probabilities elsewhere.

    Args:
        coarse: The scores before refinement.
        classes: (K,) int64 classes that have refined masks, ascending.
        maps: (K, H, W) their refined scores, zero outside the masks.
        failed: (H, W) bool: regions that could not be refined. There the coarse scores (before normalization) count as
            well: the higher of the two is taken.
    """

    def __init__(self, coarse: ScoreMap, classes: Tensor, maps: Tensor, failed: Tensor) -> None:
        self.coarse, self.classes, self.maps, self.failed = coarse, classes, maps, failed
        self.num_classes, self.size, self.device = coarse.num_classes, coarse.size, coarse.device
        self.alarms = coarse.alarms
        self.channels = coarse.channels + coarse.num_classes
        highest, index = maps.max(0)
        self.refined = highest > 0
        # The host decides by the refined masks alone, not by the scores that failed regions add.
        own = torch.where(self.refined, classes[index], -1)
        winner = torch.zeros_like(own)
        for top, bottom in self.ranges():
            if _any(self.refined[top:bottom]):
                winner[top:bottom] = best_class(self.log_band(top, bottom))[1]
        self.rule = RefinedRule(coarse.rule.prob_thd, own=own, winner=winner)

    @property
    def nbytes(self) -> int:
        held = (self.maps, self.failed, self.refined, self.rule.own, self.rule.winner)
        return self.coarse.nbytes + sum(tensor.nbytes for tensor in held)

    def release(self) -> None:
        self.coarse.release()  # the masks come from a network and stay

    def log_and_mass(self, top: int, bottom: int, with_mass: bool) -> tuple[Tensor, Tensor | None]:
        refined = self.refined[top:bottom]
        failed = self.failed[top:bottom] & refined
        some_failed = _any(failed)
        log, mass = self.coarse.log_and_mass(top, bottom, with_mass or some_failed)
        if not _any(refined):
            return log, mass
        scores = torch.zeros_like(log)
        scores[self.classes] = self.maps[:, top:bottom]
        if some_failed:
            scores = torch.maximum(scores, unnormalized(log, mass) * failed)
        total = scores.sum(0)
        log = torch.where(refined, scores.clamp_(min=torch.finfo(torch.float32).tiny).log_(), log)
        if with_mass:
            mass = torch.where(refined, total, 1.0 if mass is None else mass)
        return log, mass


class CoarseScores:
    """The scores of a map before normalization, as a :class:`~tpa_mmseg.core.RowSource`."""

    def __init__(self, scores: ScoreMap) -> None:
        self.scores = scores
        self.shape, self.device = (scores.num_classes, *scores.size), scores.device

    @property
    def nbytes(self) -> int:
        return self.scores.nbytes

    def release(self) -> None:
        self.scores.release()

    def rows(self, top: int, bottom: int) -> Tensor:
        return unnormalized(*self.scores.log_and_mass(top, bottom, True))


def _any(flags: Tensor) -> bool:
    """Whether a flag is set; on a GPU, which would be waited for, it is taken for granted."""
    return flags.device.type != 'cpu' or bool(flags.any())


def unnormalized(log: Tensor, mass: Tensor | None) -> Tensor:
    """``softmax(log) * mass``. Args: log (C, rows, W); mass (rows, W) or None for one."""
    scores = log.softmax(0)
    return scores if mass is None else scores.mul_(mass)
