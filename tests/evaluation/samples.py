"""Random label maps as the samples that a model returns. As a program, it scores them on the ranks of torchrun."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from mmengine.dataset import DefaultSampler
from mmengine.evaluator import Evaluator
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample
from torch import Tensor

from tpa_mmseg.evaluation import HostTPAMetric

CLASSES = ('wall', 'Straße', '汽车', 'sky', 'never seen')


def sample(prediction: Tensor, truth: Tensor | None = None, host: Tensor | None = None, **meta) -> SegDataSample:
    """A data sample. Args: prediction, truth and host, (H, W) labels; meta, such as img_path."""
    out = SegDataSample(metainfo={'img_path': 'image.jpg', **meta})
    fields = {'pred_sem_seg': prediction, 'gt_sem_seg': truth, 'host_sem_seg': host}
    for name, labels in fields.items():
        if labels is not None:
            out.set_field(PixelData(data=labels[None]), name)
    return out


def random_sample(seed: int, num_classes: int = 4, with_host: bool = True) -> SegDataSample:
    """Labels that are right more often than not, with ignored pixels, of a size that depends on the seed."""
    generator = torch.Generator().manual_seed(seed)
    size = (9 + seed % 3, 11 + seed % 5)

    def draw(share: float) -> Tensor:
        return torch.rand(size, generator=generator) < share

    def labels() -> Tensor:
        return torch.randint(num_classes, size, generator=generator)

    truth = labels()
    prediction = torch.where(draw(0.7), truth, labels())
    host = torch.where(draw(0.5), truth, labels())
    truth = truth.masked_fill(draw(0.2), 255)
    return sample(prediction, truth.to(torch.uint8), host if with_host else None, img_path=f'image{seed}.jpg')


def report_of_this_rank(images: int, collect_device: str = 'gpu') -> dict | None:
    """Scores this rank's share of the images, as mmengine's test loop does; the report exists on rank 0."""
    metric = HostTPAMetric(collect_device=collect_device)
    evaluator = Evaluator(metric)
    evaluator.dataset_meta = {'classes': CLASSES}
    for index in DefaultSampler(range(images), shuffle=False, seed=0):
        evaluator.process([random_sample(index)])
    scores = evaluator.evaluate(images)
    return None if metric.report is None else {**metric.report, 'scores': scores}


def main(images: int) -> None:
    """Writes the report of every way to collect results into the current directory, from whichever rank has one."""
    torch.distributed.init_process_group('gloo')
    for collect_device in ('gpu', 'cpu'):
        report = report_of_this_rank(images, collect_device)
        if report is not None:
            rank = torch.distributed.get_rank()
            Path(f'{collect_device}_rank{rank}.json').write_text(json.dumps(report))
    torch.distributed.destroy_process_group()


if __name__ == '__main__':
    main(int(sys.argv[1]))
