"""Pixel counts of the classes, and the scores that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from mmseg.evaluation import IoUMetric
from torch import Tensor

from ..core import Alarms
from ..core.decision import count_labels
from ..errors import TPAError

SCORES = ('aAcc', 'mIoU', 'mAcc')


@dataclass(frozen=True)
class ClassScores:
    """Scores in percent with two decimals, NaN for classes without pixels.

    Args:
        overall: aAcc, mIoU and mAcc by name.
        iou: IoU of every class.
        support: Number of ground-truth pixels of every class.
    """

    overall: dict[str, float]
    iou: Sequence[float]
    support: Sequence[int]


class ClassCounts:
    """Correct, predicted and true pixels of every class, summed image by image like IoUMetric, to the last digit."""

    def __init__(self) -> None:
        self._areas: list[Tensor] | None = None
        self._support: Tensor | int = 0

    def add(self, right: Tensor, given: Tensor, true: Tensor) -> None:
        """Adds one image, on the device of its counts.

        Args: (C,) pixels that are correct, pixels predicted as the class, pixels of the class.
        """
        self._support = self._support + true.long()  # a GPU counts an image in 32 bits
        # In float32 and image by image, as IoUMetric does: the scores must be the same.
        right, given, true = right.float(), given.float(), true.float()
        areas = [right, given + true - right, given, true]
        self._areas = areas if self._areas is None else [a + b for a, b in zip(self._areas, areas, strict=True)]

    def scores(self, nan_to_num: float | None = None) -> ClassScores:
        """Returns the scores. Args: nan_to_num: Score of a class that does not occur. Default: left out of means."""
        areas = torch.stack(self._areas).cpu()
        values = IoUMetric.total_area_to_metrics(*areas, ['mIoU'], nan_to_num)
        means = {'aAcc': values['aAcc'], 'mIoU': values['IoU'], 'mAcc': values['Acc']}
        overall = {name: _percent(np.nanmean(means[name])) for name in SCORES}
        return ClassScores(overall, [_percent(iou) for iou in values['IoU']], self._support.tolist())


class Truth(NamedTuple):
    """The ground truth of an image as it is counted."""

    labels: Tensor  #: (H, W) int32, C for ignored pixels
    ignored: Tensor  #: (H, W) bool


def checked_truth(
    truth: Tensor,
    size: tuple[int, int],
    num_classes: int,
    ignore_index: int,
    image: str | None,
    alarms: Alarms | None = None,
) -> Truth:
    """Returns the ground truth to count. Raises TPAError if it does not fit the prediction.

    Args:
        truth: (H, W) labels of the dataset.
        size: Height and width of the prediction.
        num_classes: Number of classes C of the dataset.
        ignore_index: Label of pixels that are not scored.
        image: Path of the image, for messages.
        alarms: Takes the check of the labels, to be read later. Default: it is read at once.
    """
    if tuple(truth.shape) != tuple(size):
        raise TPAError(
            f'The ground truth of {image} is {_size(truth.shape)} pixels but its prediction {_size(size)}. '
            'Put LoadAnnotations after the last Resize of the test pipeline.'
        )
    truth = truth.int()
    ignored = truth == ignore_index

    def message() -> str:
        found = truth[~ignored]
        wrong = int(found.min() if found.min() < 0 else found.max())
        return (
            f'The ground truth of {image} has label {wrong}, but the dataset has {num_classes} classes '
            f'(0 to {num_classes - 1}; {ignore_index} is ignored). Check its classes and reduce_zero_label.'
        )

    checks = Alarms() if alarms is None else alarms
    fits = truth.clamp(0, num_classes - 1)
    checks.add((torch.where(ignored, fits, truth) != fits).any(), message)
    if alarms is None:
        checks.check()
    return Truth(truth.masked_fill(ignored, num_classes), ignored)


def count_classes(labels: Tensor, num_classes: int) -> Tensor:
    """Returns the (C,) number of pixels of each class, on the device of the labels; label C is not counted."""
    return count_labels(labels, num_classes + 1)[:num_classes]


def count_hits(labels: Tensor, truth: Truth, num_classes: int) -> tuple[Tensor, Tensor]:
    """Returns (C,) correct pixels and (C,) predicted pixels of each class, without ignored ones.

    Args:
        labels: (H, W) prediction, of any integer type.
        truth: From :func:`checked_truth`.
        num_classes: Number of classes C.
    """
    right = truth.labels.masked_fill(labels != truth.labels, num_classes)
    scored = torch.where(truth.ignored, truth.labels, labels)
    return count_classes(right, num_classes), count_classes(scored, num_classes)


def _percent(value: np.floating) -> float:
    """Rounds like IoUMetric, then to the Python float of the same two decimals."""
    return round(float(np.round(value * 100, 2)), 2)


def _size(shape: Sequence[int]) -> str:
    return f'{shape[0]} x {shape[1]}'
