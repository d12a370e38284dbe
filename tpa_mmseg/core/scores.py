"""ScoreMap: the class probabilities of one image, produced band by band, and the labels that follow from them.

A host's scores stay at the resolution its network gave. Rows are upsampled, merged from text queries to classes and
decided in bands small enough for the cache, so that nothing of size C x H x W exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .bilinear import Resized, RowSource, band_ranges


@dataclass(frozen=True)
class DecisionRule:
    """How a host turns class scores into labels. The default is the plain argmax.

    Args:
        prob_thd: Pixels whose best score is below it become class 0 (the background of VOC21, Context60, ...).
        area_thd: Classes from 1 on that win at most this share of all non-background pixels are struck out, and
            their pixels go to the next best class.
        threshold: For two classes from one output channel: class 1 where its probability exceeds it.
    """

    prob_thd: float = 0.0
    area_thd: float | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None and (self.prob_thd > 0 or self.area_thd is not None):
            raise ValueError('threshold is for two classes from one channel and excludes prob_thd and area_thd')

    @property
    def reads_scores(self) -> bool:
        """Whether the value of the best score matters, not only its class."""
        return self.prob_thd > 0

    def finish(self, labels: Tensor, best: Tensor | None) -> Tensor:
        """The labels of an image. A host that decides by more than its scores has a rule that overrides this.

        Args:
            labels: (H, W) best class of every pixel, of any integer type, which may be changed in place.
            best: (H, W) its score ``softmax(log) * mass``, None where the rule does not read it.
        """
        return labels if best is None else labels.masked_fill_(best < self.prob_thd, 0)


ARGMAX = DecisionRule()


def best_class(log: Tensor) -> tuple[Tensor, Tensor]:
    """The highest value of each pixel and its class, what ``log.max(0)`` gives. Args: log (C, rows, W)."""
    if log.device.type != 'cpu':
        return log.max(0)
    # On a CPU, pooling over the class axis does many pixels per instruction and is several times faster than max().
    classes, *shape = log.shape
    pixels = log.reshape(1, classes, 1, -1).permute(0, 3, 1, 2)
    best, label = (out.view(shape) for out in F.max_pool2d(pixels, (classes, 1), return_indices=True))
    undefined = best.isnan()
    if undefined.any():
        # Where there is a NaN, max() gives the first, pooling the last.
        label[undefined] = log[:, undefined].argmax(0)
    return best, label


class ScoreMap:
    """The class probabilities of one image. Subclasses say how a band of them is made.

    Attributes:
        num_classes: Number of classes C.
        size: Height and width of the original image.
        rule: The host's own decision rule.
        channels: Number of channels that are upsampled (text queries may outnumber classes).
        source: The map that bands are made from.
    """

    num_classes: int
    size: tuple[int, int]
    rule: DecisionRule
    channels: int
    device: torch.device
    source: RowSource

    def log_and_mass(self, top: int, bottom: int, with_mass: bool) -> tuple[Tensor, Tensor | None]:
        """Log-probabilities of a band up to a constant per pixel, and the mass of its pixels.

        Returns:
            (C, rows, W) tensor that the caller may change in place, NaN where the host gives no distribution; and
            the (rows, W) sum of the host's class scores before they were normalized, None where it is
            one everywhere or was not asked for.
        """
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes that the map and everything behind it hold."""
        return self.source.nbytes

    def release(self) -> None:
        """Free what can be computed again without a network."""
        self.source.release()

    def log_band(self, top: int, bottom: int) -> Tensor:
        """Log-probabilities of rows ``top`` to ``bottom``, up to a constant per pixel: (C, rows, W)."""
        return self.log_and_mass(top, bottom, with_mass=False)[0]

    def band(self, top: int, bottom: int) -> Tensor:
        """Probabilities of rows ``top`` to ``bottom`` on the simplex: (C, rows, W)."""
        return self.log_band(top, bottom).softmax(0)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The bands, as (top, bottom) pairs, that cover the image."""
        return band_ranges(self.channels, self.size, self.device)

    @property
    def mass(self) -> Tensor:
        """(H, W) sum of the host's class scores before they were normalized."""
        mass = torch.ones(self.size, dtype=torch.float32, device=self.device)
        for top, bottom in self.ranges():
            band = self.log_and_mass(top, bottom, with_mass=True)[1]
            if band is not None:
                mass[top:bottom] = band
        return mass

    def probabilities(self) -> Tensor:
        """All probabilities at full size, (C, H, W): only for users who ask for them."""
        out = torch.empty(self.num_classes, *self.size, dtype=torch.float32, device=self.device)
        for top, bottom in self.ranges():
            out[:, top:bottom] = self.band(top, bottom)
        return out

    def labels(self) -> Tensor:
        """(H, W) int64 labels by the host's own rule."""
        sweep = LabelSweep(self.rule, self)
        for top, bottom in self.ranges():
            sweep.take(top, *self.log_and_mass(top, bottom, sweep.needs_mass))
        return sweep.labels()


class QueryScores(ScoreMap):
    """Scores of text queries (or logits of classes) that become probabilities by a softmax over all queries.

    A class with several queries (synonyms) takes the best of them: ``p_c = max_q softmax(s)_q``, divided by its sum
    over classes.

    Args:
        scores: (Q, h, w) scores *after* any logit scale, as a tensor or a :class:`RowSource`.
        size: Height and width of the original image; the scores are resized to it before the softmax.
        query_to_class: Class of each query, ascending or not; by default every query is a class of its own.
        rule: The host's decision rule.
        align_corners: Of the resize to ``size``.
    """

    def __init__(
        self,
        scores: Tensor | RowSource,
        size: tuple[int, int],
        query_to_class: Sequence[int] | None = None,
        rule: DecisionRule = ARGMAX,
        align_corners: bool = False,
    ) -> None:
        self.source = Resized(scores, size, align_corners)
        self.channels = self.source.shape[0]
        self.device = self.source.device
        self.size = self.source.size
        self.rule = rule
        self._owned = self.source.size != tuple(self.source.source.shape[1:])
        classes = list(range(self.channels)) if query_to_class is None else [int(c) for c in query_to_class]
        self.num_classes = max(classes) + 1
        self._queries = [[q for q, c in enumerate(classes) if c == label] for label in range(self.num_classes)]
        if len(classes) != self.channels or not all(self._queries):
            raise ValueError(
                f'query_to_class must give each of {self.channels} queries a class, and each class a query'
            )
        self._one_to_one = self._queries == [[q] for q in range(self.channels)]

    def log_and_mass(self, top: int, bottom: int, with_mass: bool) -> tuple[Tensor, Tensor | None]:
        queries = self.source.rows(top, bottom)
        if self._one_to_one:
            return (queries if self._owned else queries.clone()), None
        # log p_c is the best query's score minus terms that all classes of a pixel share.
        log = torch.stack([queries[q[0]] if len(q) == 1 else queries[_as_slice(q)].amax(0) for q in self._queries])
        if not with_mass:
            return log, None
        return log, (log.logsumexp(0) - queries.logsumexp(0)).exp()


class ClassProbabilities(ScoreMap):
    """Non-negative class scores that need not sum to one: mask classifiers, maps refined at full size.

    Args:
        values: (C, h, w) scores, as a tensor or a :class:`RowSource`; resized to ``size``, then divided by their sum.
        size: Height and width of the original image.
        rule: The host's decision rule.
        align_corners: Of the resize.
    """

    def __init__(
        self,
        values: Tensor | RowSource,
        size: tuple[int, int],
        rule: DecisionRule = ARGMAX,
        align_corners: bool = False,
    ) -> None:
        self.source = Resized(values, size, align_corners)
        self.num_classes = self.channels = self.source.shape[0]
        self.device = self.source.device
        self.size = self.source.size
        self.rule = rule

    def log_and_mass(self, top: int, bottom: int, with_mass: bool) -> tuple[Tensor, Tensor | None]:
        values = self.source.rows(top, bottom)
        total = values.sum(0)
        log = values.clamp(min=torch.finfo(torch.float32).tiny).log_()
        # No score at all is no distribution: such a pixel is nobody's anchor and keeps the host's label.
        log.masked_fill_(total <= 0, float('nan'))
        return log, total if with_mass else None


class LabelSweep:
    """Collects labels band by band and applies a decision rule to ``softmax(log) * mass``.

    Args:
        rule: The rule.
        scores: The map that bands come from; read again for the few bands in which ``area_thd`` strikes out a class.
        dtype: Integer type of the labels.
    """

    def __init__(self, rule: DecisionRule, scores: ScoreMap, dtype: torch.dtype = torch.int64) -> None:
        self.rule = rule
        self.scores = scores
        self._labels = torch.empty(scores.size, dtype=dtype, device=scores.device)
        self._best = torch.empty(scores.size, dtype=torch.float32, device=scores.device) if rule.reads_scores else None

    @property
    def needs_mass(self) -> bool:
        return self.rule.reads_scores

    def take(self, top: int, log: Tensor, mass: Tensor | None) -> None:
        """Decides a band. Args: log (C, rows, W), left as it is; mass (rows, W) or None for one."""
        band = slice(top, top + log.shape[1])
        if self.rule.threshold is not None:
            self._labels[band] = torch.sigmoid(log[1] - log[0]) > self.rule.threshold
            return
        best, label = best_class(log)
        self._labels[band] = label
        if self._best is not None:
            self._best[band] = _score(best, log, mass)

    def labels(self) -> Tensor:
        """(H, W) labels, once every band was taken."""
        if self.rule.area_thd is not None:
            self._strike_small_classes()
        return self.rule.finish(self._labels, self._best).to(self._labels.dtype)

    def _strike_small_classes(self) -> None:
        count = torch.bincount(self._labels.flatten(), minlength=self.scores.num_classes)
        struck = count <= self.rule.area_thd * count[1:].sum()
        struck[0] = False
        hit = struck[self._labels.long()]
        hit_rows = hit.any(1).cpu()
        for top, bottom in self.scores.ranges():
            if not hit_rows[top:bottom].any():
                continue
            log, mass = self.scores.log_and_mass(top, bottom, self.needs_mass)
            best, label = best_class(log.masked_fill(struck[:, None, None], float('-inf')))
            # A pixel without a distribution has no next best class.
            where = hit[top:bottom] & log.amax(0).isfinite()
            self._labels[top:bottom] = torch.where(where, label.to(self._labels.dtype), self._labels[top:bottom])
            if self._best is not None:
                self._best[top:bottom] = torch.where(where, _score(best, log, mass), self._best[top:bottom])


def _score(best: Tensor, log: Tensor, mass: Tensor | None) -> Tensor:
    """``softmax(log) * mass`` at the class whose log is ``best``."""
    score = (log - best).exp_().sum(0).reciprocal_()
    return score if mass is None else score.mul_(mass)


def _as_slice(indices: list[int]) -> slice | list[int]:
    """A view instead of a copy where the indices are consecutive."""
    if indices == list(range(indices[0], indices[-1] + 1)):
        return slice(indices[0], indices[-1] + 1)
    return indices
