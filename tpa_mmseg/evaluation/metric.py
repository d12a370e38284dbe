"""HostTPAMetric: scores of the host and of TPA from one pass over the data."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from mmengine.evaluator import BaseMetric
from mmengine.logging import print_log
from mmseg.evaluation import IoUMetric
from mmseg.registry import METRICS
from PIL import Image
from torch import Tensor

from ..errors import TPAError
from ..io import write_png
from .summary import SCORES


@METRICS.register_module()
class HostTPAMetric(BaseMetric):
    """Scores host and TPA like MMSegmentation's IoUMetric, to the last digit.

    A data sample holds TPA's labels as ``pred_sem_seg`` and the host's as ``host_sem_seg``. Without the latter,
    ``pred_sem_seg`` holds the host's labels and there is nothing to compare.

    Args:
        ignore_index: Ground-truth pixels with this label are not scored.
        nan_to_num: Score of a class that occurs neither in the ground truth nor in the prediction. Default: such a
            class is left out of the means.
        output_dir: Folder for the predicted label maps, one PNG per image. Default: they are not written.
        format_only: Whether to write the label maps only, for test sets without ground truth.
        collect_device: How ranks send their results: ``'gpu'`` through the process group (also gloo on CPUs),
            ``'cpu'`` through files in the current directory, which all nodes must share.
        prefix: Prefix of the names of the scores.

    Attributes:
        report: On rank 0 after the evaluation: ``host``, ``tpa``, ``gain`` and ``per_class``, ready for JSON.
    """

    # An empty prefix is meant: BaseMetric warns about none.
    default_prefix = ''

    def __init__(
        self,
        ignore_index: int = 255,
        nan_to_num: float | None = None,
        output_dir: str | None = None,
        format_only: bool = False,
        collect_device: str = 'gpu',
        prefix: str | None = None,
    ) -> None:
        super().__init__(collect_device=collect_device, prefix=prefix)
        if format_only and output_dir is None:
            raise TPAError('format_only=True requires an output_dir for the label maps: set it in test_evaluator.')
        self.ignore_index = ignore_index
        self.nan_to_num = nan_to_num
        self.output_dir = None if output_dir is None else Path(output_dir)
        self.format_only = format_only
        self.report: dict | None = None

    @property
    def num_classes(self) -> int:
        return len(self.dataset_meta['classes'])

    def process(self, data_batch: dict, data_samples: Sequence[dict]) -> None:
        """Counts the pixels of every image, and writes its label map if there is an ``output_dir``."""
        for sample in data_samples:
            prediction = sample['pred_sem_seg']['data'].squeeze(0)
            if self.output_dir is not None:
                self._write_labels(sample, prediction)
            # A record must not be None, which mmengine drops, nor a NamedTuple, which it turns into a tuple.
            record = {'img_path': sample.get('img_path')}
            if not self.format_only:
                truth = self._truth(sample, prediction)
                record['truth'] = self._count(truth)
                record['prediction'] = self._count_hits(prediction, truth)
                if 'host_sem_seg' in sample:
                    record['host'] = self._count_hits(sample['host_sem_seg']['data'].squeeze(0), truth)
            self.results.append(record)

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        """Returns the scores over all images, and sets :attr:`report`. Args: results: One record per image."""
        self.report = None
        if self.output_dir is not None:
            self._report_label_maps(results)
        if self.format_only:
            return {}
        prediction, prediction_iou = self._score(results, 'prediction')
        support = sum(record['truth'] for record in results).tolist()
        if not all('host' in record for record in results):
            self.report = _report(self.dataset_meta['classes'], support, prediction, prediction_iou)
            return prediction
        host, host_iou = self._score(results, 'host')
        self.report = _report(self.dataset_meta['classes'], support, host, host_iou, prediction, prediction_iou)
        return {
            **prediction,
            **{f'host_{name}': host[name] for name in SCORES},
            **{f'gain_{name}': round(prediction[name] - host[name], 2) for name in SCORES},
        }

    def _truth(self, sample: dict, prediction: Tensor) -> Tensor:
        """(H, W) labels of the truth on the prediction's device, checked against the class list; C where ignored."""
        image = sample.get('img_path')
        if 'gt_sem_seg' not in sample:
            raise TPAError(
                f'{image} has no ground truth to score. Add LoadAnnotations to the test pipeline, or set '
                'format_only=True and output_dir in test_evaluator to write label maps only.'
            )
        truth = sample['gt_sem_seg']['data'].squeeze(0).to(prediction)
        if truth.shape != prediction.shape:
            raise TPAError(
                f'The ground truth of {image} is {_size(truth)} pixels but its prediction {_size(prediction)}. '
                'Put LoadAnnotations after the last Resize of the test pipeline.'
            )
        ignored = truth == self.ignore_index
        lowest, highest = truth.masked_fill(ignored, 0).aminmax()
        if lowest < 0 or highest >= self.num_classes:
            raise TPAError(
                f'The ground truth of {image} has label {int(lowest if lowest < 0 else highest)}, but the dataset '
                f'has {self.num_classes} classes (0 to {self.num_classes - 1}; {self.ignore_index} is ignored). '
                'Check its classes and reduce_zero_label.'
            )
        return truth.masked_fill(ignored, self.num_classes)

    def _count(self, labels: Tensor) -> Tensor:
        """(C,) number of pixels of each class; label C does not count."""
        return torch.bincount(labels.flatten(), minlength=self.num_classes + 1)[: self.num_classes].cpu()

    def _count_hits(self, labels: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
        """Pixels of each class that are right, and pixels that were given the class, (C,) each; ignored ones apart."""
        labels = labels.masked_fill(truth == self.num_classes, self.num_classes)
        return self._count(labels.masked_fill(labels != truth, self.num_classes)), self._count(labels)

    def _score(self, results: list[dict], which: str) -> tuple[dict[str, float], list[float]]:
        """aAcc, mIoU and mAcc of one of the predictions, and the IoU of every class: percent with two decimals."""
        # Summed and rounded in float32, image by image, because IoUMetric does: the numbers are to be the same.
        areas = []
        for record in results:
            right, given, true = (*(area.float() for area in record[which]), record['truth'].float())
            areas.append((right, given + true - right, given, true))
        totals = [sum(images) for images in zip(*areas, strict=True)]
        values = IoUMetric.total_area_to_metrics(*totals, ['mIoU'], self.nan_to_num)
        scores = {
            'aAcc': _percent(np.nanmean(values['aAcc'])),
            'mIoU': _percent(np.nanmean(values['IoU'])),
            'mAcc': _percent(np.nanmean(values['Acc'])),
        }
        return scores, [_percent(iou) for iou in values['IoU']]

    def _write_labels(self, sample: dict, prediction: Tensor) -> None:
        labels = prediction.cpu().numpy()
        # The files of a dataset that reduces label zero count from one, and so do its test servers.
        if sample.get('reduce_zero_label', False):
            labels = labels + 1
        labels = labels.astype(np.uint16 if self.num_classes > 255 else np.uint8)
        write_png(self.output_dir / _label_name(sample['img_path']), Image.fromarray(labels))

    def _report_label_maps(self, results: list[dict]) -> None:
        print_log(f'Label maps written to {self.output_dir}', logger='current')
        owners: dict[str, str] = {}
        for record in results:
            name, image = _label_name(record['img_path']), record['img_path']
            if owners.setdefault(name, image) != image:
                print_log(
                    f'{owners[name]} and {image} share the label map {name}, so one of them was overwritten. Test '
                    'the folders one at a time to keep both.',
                    logger='current',
                    level=logging.WARNING,
                )
                return


def _report(
    classes: Sequence[str],
    support: list[int],
    host: dict[str, float],
    host_iou: list[float],
    tpa: dict[str, float] | None = None,
    tpa_iou: list[float] | None = None,
) -> dict:
    """Returns all scores of a run, with None for what has no value."""
    report: dict = {'host': {name: _known(host[name]) for name in SCORES}}
    if tpa is not None:
        report['tpa'] = {name: _known(tpa[name]) for name in SCORES}
        report['gain'] = {name: _gain(host[name], tpa[name]) for name in SCORES}
    report['per_class'] = []
    for i, name in enumerate(classes):
        entry = {'name': name, 'host_iou': _known(host_iou[i])}
        if tpa_iou is not None:
            entry |= {'tpa_iou': _known(tpa_iou[i]), 'gain': _gain(host_iou[i], tpa_iou[i])}
        report['per_class'].append({**entry, 'support': support[i]})
    return report


def _percent(value: np.floating) -> float:
    """Rounds like IoUMetric, then to the Python float of the same two decimals."""
    return round(float(np.round(value * 100, 2)), 2)


def _known(value: float) -> float | None:
    """Replaces NaN, which JSON does not have, by None: an absent class has no IoU."""
    return None if math.isnan(value) else value


def _gain(host: float, tpa: float) -> float | None:
    """Returns the difference of the rounded scores, so that the printed columns add up."""
    return _known(round(tpa - host, 2))


def _label_name(img_path: str) -> str:
    return f'{Path(img_path).stem}.png'


def _size(labels: Tensor) -> str:
    return f'{labels.shape[0]} x {labels.shape[1]}'
