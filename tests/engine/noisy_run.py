"""A real test run of mmengine over a few written images, by a model that knows the truth and spoils a part of it."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner
from mmengine.structures import PixelData
from PIL import Image

from tpa_mmseg.core import PrototypeBank

# mmengine keeps its loggers by the name of the run.
_RUNS = count()

CLASSES = ('wall', 'Straße', 'sky')


class NoisyTruth(BaseModel):
    """Predicts the truth but for the first row; as the host, but for the first two rows.

    Args:
        with_host: Whether it is TPA, with the host's labels beside its own, or a plain segmentor.
        bank: The bank in use.
    """

    def __init__(self, with_host: bool = True, bank: PrototypeBank | None = None) -> None:
        super().__init__()
        self.with_host = with_host
        self.bank = bank

    def forward(self, inputs, data_samples, mode='predict'):
        for sample in data_samples:
            truth = sample.gt_sem_seg.data.long()
            sample.pred_sem_seg = PixelData(data=_spoil(truth, rows=1))
            if self.with_host:
                sample.host_sem_seg = PixelData(data=_spoil(truth, rows=2))
        return data_samples


def _spoil(truth: torch.Tensor, rows: int) -> torch.Tensor:
    """Moves the labels of the first rows to the next class."""
    labels = truth.masked_fill(truth == 255, 0)
    labels[:, :rows] = (labels[:, :rows] + 1) % len(CLASSES)
    return labels


def write_images(folder: Path, names=('a/x.png', 'b/x.png', 'b/y.png'), size=(12, 16)) -> None:
    """Writes images and label maps below ``folder``."""
    for seed, name in enumerate(names):
        draw = np.random.default_rng(seed)
        labels = draw.integers(0, len(CLASSES), size).astype(np.uint8)
        labels[-1] = 255
        for kind, array in (('images', draw.integers(0, 255, (*size, 3), dtype=np.uint8)), ('labels', labels)):
            path = folder / kind / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(array).save(path)


def run(folder: Path, model: BaseModel, hooks: list, evaluator: dict | None = None, **changes) -> Runner:
    """Tests the model on the images of ``folder``; the work directory is ``folder/work``."""
    dataset = dict(
        type='BaseSegDataset',
        data_root=str(folder),
        data_prefix=dict(img_path='images', seg_map_path='labels'),
        img_suffix='.png',
        metainfo=dict(classes=CLASSES, palette=[[10, 20, 30], [40, 50, 60], [70, 80, 90]]),
        pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')],
    )
    runner = Runner(
        model=model,
        work_dir=str(folder / 'work'),
        test_dataloader=dict(
            batch_size=2, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False), dataset=dataset
        ),
        test_evaluator=evaluator or dict(type='HostTPAMetric'),
        test_cfg=dict(type='TestLoop'),
        custom_hooks=hooks,
        default_scope='mmseg',
        experiment_name=f'noisy{next(_RUNS)}',
        **changes,
    )
    runner.test()
    return runner
