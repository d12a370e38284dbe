"""From class scores to labels: the rules of hosts, and the best class of each pixel, collected band by band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .given import given


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
# histc multiplies labels by their number, and the product of two has to fit into 31 bits.
_MOST_BINS = 1 << 15


def label_type(num_classes: int) -> torch.dtype:
    """The smallest integer type that holds the labels of so many classes."""
    for dtype in (torch.uint8, torch.int16):
        if num_classes - 1 <= torch.iinfo(dtype).max:
            return dtype
    return torch.int32


def count_labels(labels: Tensor, classes: int) -> Tensor:
    """(classes,) number of pixels of each label, without waiting for a GPU. Args: labels: from 0 on."""
    if labels.device.type == 'cpu':
        return torch.bincount(labels.flatten(), minlength=classes)[:classes]
    # bincount waits for the GPU, to learn the largest label.
    if classes < _MOST_BINS:
        return torch.histc(labels.int(), classes, 0, classes)
    flat = labels.flatten().long()
    return flat.new_zeros(classes).index_add_(0, flat, torch.ones_like(flat))


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


class Peak(NamedTuple):
    """The best class of each pixel among the classes seen so far, all of one shape such as (rows, W)."""

    best: Tensor  #: its log-probability
    label: Tensor  #: the class
    total: Tensor | None = None  #: sum over classes of ``exp(log - best)``, if asked for

    @classmethod
    def of(cls, log: Tensor, first: int = 0, with_total: bool = False) -> Peak:
        """Args: log: (C, rows, W), left as it is; first: number of its first class."""
        best, label = best_class(log)
        return cls(best, label + first if first else label, (log - best).exp_().sum(0) if with_total else None)

    def merge(self, later: Peak) -> Peak:
        """The peak of both, as if their classes had been seen at once. Args: later: of classes with higher numbers."""
        # What max() gives: the first of equals, and the first NaN.
        better = ~(later.best <= self.best) & ~self.best.isnan()
        best = torch.where(better, later.best, self.best)
        label = torch.where(better, later.label.to(self.label.dtype), self.label)
        if self.total is None or later.total is None:
            return Peak(best, label)
        total = self.total * (self.best - best).exp_() + later.total * (later.best - best).exp_()
        return Peak(best, label, total)


class PeakMap:
    """The peaks of a whole image, put together from bands of some of its classes at a time.

    Args:
        size: Height and width of the image.
        device: Where.
        dtype: Integer type of the labels.
        keep_best: Keep the highest values; they are needed if not all classes come at once.
        with_total: Keep the totals.
    """

    def __init__(
        self,
        size: tuple[int, int],
        device: torch.device,
        dtype: torch.dtype,
        keep_best: bool = False,
        with_total: bool = False,
    ) -> None:
        self.label = torch.empty(size, dtype=dtype, device=device)
        self.best = torch.empty(size, device=device) if keep_best else None
        self.total = torch.empty(size, device=device) if with_total else None

    def take(self, top: int, log: Tensor, first: int) -> Peak:
        """Adds a band of the classes from ``first`` on; returns the band's peak so far. Args: log (C, rows, W)."""
        peak, band = Peak.of(log, first, self.total is not None), slice(top, top + log.shape[1])
        if first:
            peak = self.rows(band).merge(peak)
        self.label[band] = peak.label
        if self.best is not None:
            self.best[band] = peak.best
        if self.total is not None and peak.total is not None:
            self.total[band] = peak.total
        return peak

    def rows(self, band: slice) -> Peak:
        """The peaks of some rows, where the highest values were kept."""
        return Peak(given(self.best)[band], self.label[band], None if self.total is None else self.total[band])
