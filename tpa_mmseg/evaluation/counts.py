"""Pixel counts of the classes, and the scores that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from mmseg.evaluation import IoUMetric
from torch import Tensor

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
        """Adds one image. Args: (C,) pixels that are correct, pixels predicted as the class, pixels of the class."""
        self._support = self._support + true
        # In float32 and image by image, as IoUMetric does: the scores must be the same.
        right, given, true = right.float(), given.float(), true.float()
        areas = [right, given + true - right, given, true]
        self._areas = areas if self._areas is None else [a + b for a, b in zip(self._areas, areas, strict=True)]

    def scores(self, nan_to_num: float | None = None) -> ClassScores:
        """Returns the scores. Args: nan_to_num: Score of a class that does not occur. Default: left out of means."""
        values = IoUMetric.total_area_to_metrics(*self._areas, ['mIoU'], nan_to_num)
        means = {'aAcc': values['aAcc'], 'mIoU': values['IoU'], 'mAcc': values['Acc']}
        overall = {name: _percent(np.nanmean(means[name])) for name in SCORES}
        return ClassScores(overall, [_percent(iou) for iou in values['IoU']], self._support.tolist())


@dataclass(frozen=True)
class ImageCounts:
    """Pixel counts of one image, on the device of its labels until the end of the test.

    Args:
        counts: (1 + 2 n, C) int64: pixels of each class in the ground truth, then for each of n predictions those that
            are correct and those that are predicted.
        labels: (2,) int64 lowest and highest label of the ground truth, ignored pixels aside.
    """

    counts: Tensor
    labels: Tensor


def count_image(truth: Tensor, predictions: Sequence[Tensor], num_classes: int, ignore_index: int) -> ImageCounts:
    """Counts the pixels of an image, without waiting for a GPU.

    Args:
        truth: (H, W) labels of the dataset, of any integer type.
        predictions: (H, W) labels each, on the device where they are counted.
        num_classes: Number of classes C.
        ignore_index: Label of pixels that are not scored.
    """
    truth = truth.to(predictions[0].device, torch.int32)
    ignored = truth == ignore_index
    labels = torch.stack(truth.masked_fill(ignored, 0).aminmax())
    # Label C collects what is not counted.
    truth = truth.masked_fill_(ignored, num_classes)
    maps = [truth.clamp(0, num_classes)]
    for prediction in predictions:
        scored = prediction.int().masked_fill_(ignored, num_classes)
        maps += [scored.masked_fill(scored != truth, num_classes), scored]
    return ImageCounts(torch.stack([count_labels(one, num_classes + 1)[:num_classes] for one in maps]), labels)


def to_cpu(images: Sequence[ImageCounts]) -> list[ImageCounts]:
    """The counts of many images on the CPU, in one copy if all have the same number of predictions."""
    kinds = {one.counts.shape for one in images}
    if len(kinds) > 1:
        return [ImageCounts(one.counts.cpu(), one.labels.cpu()) for one in images]
    counts, labels = (torch.stack([getattr(one, name) for one in images]).cpu() for name in ('counts', 'labels'))
    return [ImageCounts(*both) for both in zip(counts, labels, strict=True)]


def check_size(truth: Tensor, size: Sequence[int], image: str | None) -> None:
    """Raises TPAError if the (H, W) ground truth of an image has another size than its prediction."""
    if tuple(truth.shape) != tuple(size):
        raise TPAError(
            f'The ground truth of {image} is {_size(truth.shape)} pixels but its prediction {_size(size)}. '
            'Put LoadAnnotations after the last Resize of the test pipeline.'
        )


def check_labels(labels: Tensor, num_classes: int, ignore_index: int, image: str | None) -> None:
    """Raises TPAError if a ground truth has a label that no class has. Args: labels: from :class:`ImageCounts`."""
    lowest, highest = labels.tolist()
    if lowest < 0 or highest >= num_classes:
        raise TPAError(
            f'The ground truth of {image} has label {lowest if lowest < 0 else highest}, but the dataset has '
            f'{num_classes} classes (0 to {num_classes - 1}; {ignore_index} is ignored). Check its classes and '
            'reduce_zero_label.'
        )


def _percent(value: np.floating) -> float:
    """Rounds like IoUMetric, then to the Python float of the same two decimals."""
    return round(float(np.round(value * 100, 2)), 2)


def _size(shape: Sequence[int]) -> str:
    return f'{shape[0]} x {shape[1]}'
