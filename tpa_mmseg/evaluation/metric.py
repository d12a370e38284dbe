"""HostTPAMetric: scores of the host and of TPA from one pass over the data."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from mmengine.evaluator import BaseMetric
from mmengine.logging import print_log
from mmseg.registry import METRICS
from PIL import Image
from torch import Tensor

from ..core import Alarms
from ..errors import TPAError
from ..io import write_png
from .counts import SCORES, ClassCounts, ClassScores, Truth, checked_truth, count_classes, count_hits
from .report import report_of


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
        collect_device: Literal['gpu', 'cpu'] = 'gpu',
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
        self._alarms = Alarms()

    @property
    def num_classes(self) -> int:
        return len(self.dataset_meta['classes'])

    def process(self, data_batch: dict, data_samples: Sequence[dict]) -> None:
        """Counts the pixels of every image, and writes its label map if there is an ``output_dir``."""
        # The images before these: their counting is over by now, so that no GPU has to be waited for.
        self._alarms.check()
        for sample in data_samples:
            prediction = sample['pred_sem_seg']['data'].squeeze(0)
            if self.output_dir is not None:
                self._write_labels(sample, prediction)
            # A record must not be None, which mmengine drops, nor a NamedTuple, which it turns into a tuple.
            record = {'img_path': sample.get('img_path'), 'pixels': prediction.numel()}
            if not self.format_only:
                truth = self._truth(sample, prediction)
                record['truth'] = count_classes(truth.labels, self.num_classes)
                record['prediction'] = count_hits(prediction, truth, self.num_classes)
                if 'host_sem_seg' in sample:
                    host = sample['host_sem_seg']['data'].squeeze(0)
                    record['host'] = count_hits(host, truth, self.num_classes)
                    record['changed'] = (host != prediction).sum()
            self.results.append(record)

    def evaluate(self, size: int) -> dict:
        """Copies the counts of all images to the CPU at once, and scores them. Args: size: of the dataset."""
        self._alarms.check()
        _to_cpu(self.results)
        return super().evaluate(size)

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        """Returns the scores over all images, and sets :attr:`report`. Args: results: One record per image."""
        self.report = None
        if self.output_dir is not None:
            self._report_label_maps(results)
        if self.format_only:
            return {}
        classes, prediction = self.dataset_meta['classes'], self._scores(results, 'prediction')
        if not all('host' in record for record in results):
            self.report = report_of(classes, prediction)
            return prediction.overall
        host = self._scores(results, 'host')
        pixels = sum(int(record['pixels']) for record in results)
        changed = sum(int(record['changed']) for record in results) / max(pixels, 1)
        self.report = {**report_of(classes, host, prediction), 'changed': changed}
        return {
            **prediction.overall,
            **{f'host_{name}': host.overall[name] for name in SCORES},
            **{f'gain_{name}': round(prediction.overall[name] - host.overall[name], 2) for name in SCORES},
        }

    def _truth(self, sample: dict, prediction: Tensor) -> Truth:
        """Returns the checked ground truth, on the prediction's device."""
        image = sample.get('img_path')
        if 'gt_sem_seg' not in sample:
            raise TPAError(
                f'{image} has no ground truth to score. Add LoadAnnotations to the test pipeline, or set '
                'format_only=True and output_dir in test_evaluator to write label maps only.'
            )
        truth = sample['gt_sem_seg']['data'].squeeze(0).to(prediction.device)
        return checked_truth(truth, prediction.shape, self.num_classes, self.ignore_index, image, self._alarms)

    def _scores(self, results: list[dict], which: str) -> ClassScores:
        """Returns the scores of one of the predictions over all images."""
        counts = ClassCounts()
        for record in results:
            counts.add(*record[which], record['truth'])
        return counts.scores(self.nan_to_num)

    def _write_labels(self, sample: dict, prediction: Tensor) -> None:
        labels = prediction.cpu().numpy().astype(np.int32)
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


def _to_cpu(records: list[dict]) -> None:
    """Replaces the counts of records on a GPU by those on the CPU."""
    places = [(record, key) for record in records for key in ('truth', 'prediction', 'host') if key in record]
    rows = [row for record, key in places for row in ([record[key]] if key == 'truth' else record[key])]
    if not rows or rows[0].device.type == 'cpu':
        return
    changed = [record for record in records if 'changed' in record]
    counts = torch.stack([record['changed'] for record in changed]).tolist() if changed else []
    for record, count in zip(changed, counts, strict=True):
        record['changed'] = count
    copied = iter(torch.stack(rows).cpu())
    for record, key in places:
        record[key] = next(copied) if key == 'truth' else (next(copied), next(copied))


def _label_name(img_path: str) -> str:
    return f'{Path(img_path).stem}.png'
