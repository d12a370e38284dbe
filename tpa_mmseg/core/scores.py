"""ScoreMap: the class probabilities of one image, produced band by band, and the labels that follow from them.

A host's scores stay at the resolution its network gave. Rows are upsampled, merged from text queries to classes and
decided in bands small enough for the cache, so that nothing of size C x H x W exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from .alarms import Alarms
from .bilinear import Resized, RowSource, band_elements, band_ranges
from .decision import ARGMAX, DecisionRule
from .given import given
from .sweep import sweep_labels
from .tables import kept_per_shape, to_device

# Bands of fewer rows than the first number interpolate the same source rows again and again: with so many queries the
# classes are read in parts, each in bands of about the second number of rows.
_FEWEST_ROWS, _ROWS_OF_PARTS = 5, 16
_SMALLEST_PART = 16


class ScoreMap:
    """The class probabilities of one image. Subclasses say how a band of them is made.

    Attributes:
        num_classes: Number of classes C.
        size: Height and width of the original image.
        rule: The host's own decision rule.
        channels: Number of channels that are upsampled (text queries may outnumber classes).
        source: The map that bands are made from.
        alarms: Checks of the scores that were not read yet. They are read once the scores have been used.
    """

    num_classes: int
    size: tuple[int, int]
    rule: DecisionRule
    channels: int
    device: torch.device
    source: RowSource | ScoreMap
    alarms: Alarms

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

    def parts(self) -> Iterator[tuple[int, ScoreMap]]:
        """The number of the first class, and the scores, of as many classes at a time as make bands of a good shape.

        Together they have every class once, in order. Almost always there is one part, the map itself.
        """
        yield 0, self

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

    def labels(self, dtype: torch.dtype = torch.int64) -> Tensor:
        """(H, W) labels by the host's own rule. Args: dtype: their integer type."""
        return sweep_labels(self, [None], dtype)[0]


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

    source: Resized

    def __init__(
        self,
        scores: Tensor | RowSource,
        size: tuple[int, int],
        query_to_class: Sequence[int] | None = None,
        rule: DecisionRule = ARGMAX,
        align_corners: bool = False,
    ) -> None:
        self.source = Resized(scores, size, align_corners)
        self.alarms = Alarms()
        self.channels = self.source.shape[0]
        self.device = self.source.device
        self.size = self.source.size
        self.rule = rule
        self._owned = self.source.size != tuple(self.source.source.shape[1:])
        classes = range(self.channels) if query_to_class is None else query_to_class
        self.query_to_class = tuple(int(label) for label in classes)
        self.num_classes = max(self.query_to_class) + 1
        if len(self.query_to_class) != self.channels or len(set(self.query_to_class)) != self.num_classes:
            raise ValueError(
                f'query_to_class must give each of {self.channels} queries a class, and each class a query'
            )
        self.one_to_one = self.query_to_class == tuple(range(self.channels))

    def log_and_mass(self, top: int, bottom: int, with_mass: bool) -> tuple[Tensor, Tensor | None]:
        queries = self.source.rows(top, bottom)
        if self.one_to_one:
            return (queries if self._owned else queries.clone()), None
        # log p_c is the best query's score minus terms that all classes of a pixel share.
        log = best_queries(queries, self.query_to_class)
        if not with_mass:
            return log, None
        best = log.amax(0)
        of_classes, of_queries = ((scores - best).exp_().sum(0) for scores in (log, queries))
        return log, of_classes.div_(of_queries)

    def parts(self) -> Iterator[tuple[int, ScoreMap]]:
        limit, most = self.channels, self.source.most_channels
        if self.channels * self.size[1] * _FEWEST_ROWS > band_elements(self.device):
            limit = max(_SMALLEST_PART, band_elements(self.device) // (self.size[1] * _ROWS_OF_PARTS))
        limit = min(limit, most or limit)
        splits = limit < self.channels and self.query_to_class == tuple(sorted(self.query_to_class))
        if not splits or self.source.channels(0, 1) is None:
            yield 0, self
            return
        first = 0
        for stop in _ends(self.query_to_class, limit):
            label = self.query_to_class[first]
            classes = [query - label for query in self.query_to_class[first:stop]]
            part = given(self.source.source.channels(first, stop))
            yield label, QueryScores(part, self.size, classes, self.rule, self.source.align_corners)
            first = stop


def _ends(query_to_class: tuple[int, ...], limit: int) -> Iterator[int]:
    """Where parts of about ``limit`` queries end, between two classes. Args: query_to_class: ascending."""
    count = len(query_to_class)
    step = -(-count // -(-count // limit))
    stop = 0
    while stop < count:
        stop = min(stop + step, count)
        while stop < count and query_to_class[stop] == query_to_class[stop - 1]:
            stop += 1
        yield stop


def best_queries(queries: Tensor, query_to_class: tuple[int, ...]) -> Tensor:
    """The best score of each class: (Q, rows, W) -> (C, rows, W). A segmented maximum over sorted queries."""
    order, lengths = _segments(query_to_class, str(queries.device))
    if order is not None:
        queries = queries.index_select(0, order)
    if queries.device.type != 'cpu':
        return torch.segment_reduce(queries, 'max', lengths=lengths, axis=0, unsafe=True)
    out = queries.new_empty(len(lengths), *queries.shape[1:])
    for best, of_class in zip(out, queries.split(lengths.tolist()), strict=True):
        best.copy_(of_class[0]) if len(of_class) == 1 else torch.amax(of_class, 0, out=best)
    return out


@kept_per_shape(64)
def _segments(query_to_class: tuple[int, ...], device: str) -> tuple[Tensor | None, Tensor]:
    """(Q,) order that sorts queries by class, None if they are sorted, and (C,) number of queries of each class."""
    classes = np.array(query_to_class)
    ascending = (np.diff(classes) >= 0).all()
    order = None if ascending else to_device(classes.argsort(kind='stable'), device)
    return order, to_device(np.bincount(classes), device)


class ClassProbabilities(ScoreMap):
    """Non-negative class scores that need not sum to one: mask classifiers, maps refined at full size.

    Args:
        values: (C, h, w) scores, as a tensor or a :class:`RowSource`; resized to ``size``, then divided by their sum.
        size: Height and width of the original image.
        rule: The host's decision rule.
        align_corners: Of the resize.
    """

    source: Resized

    def __init__(
        self,
        values: Tensor | RowSource,
        size: tuple[int, int],
        rule: DecisionRule = ARGMAX,
        align_corners: bool = False,
    ) -> None:
        self.source = Resized(values, size, align_corners)
        self.alarms = Alarms()
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
