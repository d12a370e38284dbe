"""One sweep over the bands of an image's scores: the labels of the host and of everything that adds to its scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from .decision import ARGMAX, DecisionRule, Peak, PeakMap, count_labels
from .fused import FusedReader
from .given import given
from .protocols import Added, Scores

_T = TypeVar('_T')


class _Plain:
    """The host's scores with nothing added, decided by their plain argmax."""

    rule, adds_nothing = ARGMAX, True
    lookup: Any = None
    fusion: Any = None
    second: Any = None

    def add_to(self, log: Tensor, top: int, first: int) -> None:
        pass


PLAIN = _Plain()


def sweep_labels(host: Scores, added: Sequence[Added | None], dtype: torch.dtype) -> list[Tensor]:
    """(H, W) labels of each of ``added``, by its rule; None stands for the host alone.

    Where a rule strikes out classes that win few pixels, the bands that they won are read a second time. A CPU reads
    just these; a GPU reads all, because it need not wait then for the answer which they are.

    Args:
        host: The host's scores.
        added: What is added to them.
        dtype: Integer type of the labels.
    """
    fused = FusedReader.of(host, added)
    parts = list(host.parts()) if fused is None else []
    keep_best = fused is not None or len(parts) > 1
    sweeps = [_LabelSweep(host, host.rule if one is None else one.rule, dtype, keep_best) for one in added]
    mass = _MassMap(host, len(parts) > 1) if any(sweep.rule.reads_scores for sweep in sweeps) else None
    if fused is None:
        _read(parts, partial(_take, added, sweeps, mass), with_mass=mass is not None)
    else:
        of_mass = None if mass is None or fused.one_to_one else mass.make()
        fused.read(*_host_and_added(added, [sweep.peaks for sweep in sweeps]), of_mass)
    for sweep in sweeps:
        sweep.score(None if mass is None else mass.map)
    striking = [(one, sweep) for one, sweep in zip(added, sweeps, strict=True) if sweep.strike()]
    if striking:
        again, struck = zip(*striking, strict=True)
        if fused is None:
            _read(parts, partial(_retake, again, struck), wanted=partial(_hit, struck))
        else:
            following, masks = [sweep.following for sweep in struck], [sweep.struck for sweep in struck]
            fused.read(*_host_and_added(again, following), None, _host_and_added(again, masks))
    return [sweep.labels() for sweep in sweeps]


def _host_and_added(added: Sequence[Added | None], values: Sequence[_T]) -> tuple[_T | None, _T | None]:
    """The value of the host and that of what is added to it, in this order; None where there is none."""
    pairs = list(zip(added, values, strict=True))
    host = next((value for one, value in pairs if one is None), None)
    return host, next((value for one, value in pairs if one is not None), None)


def _take(
    added: Sequence[Added | None],
    sweeps: Sequence[_LabelSweep],
    mass: _MassMap | None,
    top: int,
    first: int,
    log: Tensor,
    band_mass: Tensor | None,
) -> None:
    """First reading of a band."""
    if mass is not None:
        mass.take(top, first, log, band_mass)
    _each(added, sweeps, top, first, log, _LabelSweep.take)


def _retake(
    added: Sequence[Added | None], sweeps: Sequence[_LabelSweep], top: int, first: int, log: Tensor, _: Tensor | None
) -> None:
    """Second reading of a band, without the classes that were struck out."""
    _each(added, sweeps, top, first, log, _LabelSweep.retake)


def _hit(sweeps: Sequence[_LabelSweep], top: int, bottom: int) -> bool:
    """Whether a band has to be read again."""
    return any(sweep.hits(top, bottom) for sweep in sweeps)


def _read(
    parts: Sequence[tuple[int, Scores]],
    take: Callable[[int, int, Tensor, Tensor | None], None],
    with_mass: bool = False,
    wanted: Callable[[int, int], bool] = lambda top, bottom: True,
) -> None:
    """Calls ``take`` with every wanted band: its first row, its first class, log-probabilities and mass."""
    for first, part in parts:
        for top, bottom in part.ranges():
            if wanted(top, bottom):
                # In a call, so that a band is freed before the next one is made.
                take(top, first, *part.log_and_mass(top, bottom, with_mass))
        if len(parts) > 1:
            part.release()


def _each(
    added: Sequence[Added | None], sweeps: Sequence[_LabelSweep], top: int, first: int, log: Tensor, take: Callable
) -> None:
    """Gives each sweep the host's band with what its setting adds to it."""
    for number, (one, sweep) in enumerate(zip(added, sweeps, strict=True), start=1):
        band = log
        if one is not None:
            # The last one needs no copy: nothing reads the host's own band after it.
            band = log if number == len(sweeps) else log.clone()
            one.add_to(band, top, first)
        take(sweep, top, first, band)


class _LabelSweep:
    """The labels of one setting: collects the best classes and applies a decision rule to ``softmax(log) * mass``."""

    def __init__(self, scores: Scores, rule: DecisionRule, dtype: torch.dtype, keep_best: bool) -> None:
        self.rule, self.scores = rule, scores
        keep_best |= rule.area_thd is not None
        self.peaks = PeakMap(scores.size, scores.device, dtype, keep_best, rule.reads_scores)
        self._score: Tensor | None = None
        self.struck: Tensor | None = None

    def take(self, top: int, first: int, log: Tensor) -> None:
        """Decides a band. Args: log (C, rows, W) of the classes from ``first`` on, left as it is."""
        if self.rule.threshold is not None:
            self.peaks.label[top : top + log.shape[1]] = torch.sigmoid(log[1] - log[0]) > self.rule.threshold
        else:
            self.peaks.take(top, log, first)

    def score(self, mass: Tensor | None) -> None:
        """Ends the first reading. Args: mass: (H, W), None for one."""
        if self.rule.reads_scores:
            self._score = given(self.peaks.total).reciprocal_()
            if mass is not None:
                self._score.mul_(mass)

    def strike(self) -> bool:
        """Finds the classes that win too few pixels. Returns whether bands must be read again."""
        if self.rule.area_thd is None:
            return False
        count = count_labels(self.peaks.label, self.scores.num_classes)
        self.struck = count <= self.rule.area_thd * count[1:].sum()
        self.struck[0].fill_(False)
        # A pixel without a distribution has no next best class.
        self._hit = self.struck[self.peaks.label.long()].logical_and_(given(self.peaks.best).abs() < float('inf'))
        self.following = PeakMap(self.scores.size, self.scores.device, self.peaks.label.dtype, True)
        self._hit_rows = self._hit.any(1) if self._hit.device.type == 'cpu' else None
        return self._hit_rows is None or bool(self._hit_rows.any())

    def hits(self, top: int, bottom: int) -> bool:
        """Whether a band has to be read again."""
        return self._hit_rows is None or bool(self._hit_rows[top:bottom].any())

    def retake(self, top: int, first: int, log: Tensor) -> None:
        """Finds the next best classes of a band. Args: as for :meth:`take`."""
        struck = given(self.struck)[first : first + len(log), None, None]
        self.following.take(top, log.masked_fill(struck, float('-inf')), first)

    def labels(self) -> Tensor:
        """(H, W) labels, once every band was taken."""
        labels, score = self.peaks.label, self._score
        if self.struck is not None:
            labels = torch.where(self._hit, self.following.label, labels)
            if score is not None:
                lost = (given(self.following.best) - given(self.peaks.best)).exp_()
                score = torch.where(self._hit, score * lost, score)
        return self.rule.finish(labels, score).to(labels.dtype)


class _MassMap:
    """The mass of every pixel: the sum of the host's class scores before they were normalized."""

    def __init__(self, host: Scores, in_parts: bool) -> None:
        self.host, self.in_parts = host, in_parts
        self.map: Tensor | None = None  #: (H, W), None for one
        self._peaks: PeakMap | None = None

    def make(self) -> Tensor:
        """The map, to be filled."""
        if self.map is None:
            self.map = torch.empty(self.host.size, device=self.host.device)
        return self.map

    def take(self, top: int, first: int, log: Tensor, mass: Tensor | None) -> None:
        """Args: log (C', rows, W) of the classes from ``first`` on; mass (rows, W) of these, None for one."""
        band = slice(top, top + log.shape[1])
        if not self.in_parts:
            if mass is not None:
                self.make()[band] = mass
            return
        if self._peaks is None:
            self._peaks = PeakMap(self.host.size, log.device, torch.int32, True, True)
            self._queries = torch.empty(self.host.size, device=log.device)
        # A part's mass is the sum over its classes divided by the sum over its queries; both sums add up.
        before = self._peaks.rows(band)
        own = Peak.of(log, first, with_total=True)
        queries = own._replace(total=own.total if mass is None else given(own.total) / mass)
        if first:
            queries = before._replace(total=self._queries[band]).merge(queries)
        total = self._queries[band] = given(queries.total)
        merged = self._peaks.take(top, log, first)
        self.make()[band] = given(merged.total) / total
