"""Which classes the truth of each image has: for statistics and for splits, never for a bank."""

from __future__ import annotations

import copy

import numpy as np
from mmcv.transforms import LoadAnnotations
from mmseg.registry import DATASETS, TRANSFORMS
from torch.utils.data import DataLoader

from .context import RunContext


class _Present:
    """Last step of a pipeline: which of the classes the label map has. Args: num_classes; ignored label."""

    def __init__(self, num_classes: int, ignore_index: int) -> None:
        self.num_classes, self.ignore_index = num_classes, ignore_index

    def __call__(self, results: dict) -> np.ndarray:
        labels = np.unique(results['gt_seg_map'])
        labels = labels[(labels != self.ignore_index) & (labels < self.num_classes)]
        return np.isin(np.arange(self.num_classes), labels)


def classes_of_images(context: RunContext) -> np.ndarray:
    """(images, C) bool: the classes in the truth of every test image. No image is read, only labels."""
    config = copy.deepcopy(context.cfg.test_dataloader.dataset)
    steps = [step for step in config.pipeline if issubclass(TRANSFORMS.get(step['type']), LoadAnnotations)]
    ignore_index = context.cfg.test_evaluator.get('ignore_index', 255)
    config.pipeline = [*steps, _Present(len(context.dataset.metainfo['classes']), ignore_index)]
    loader = DataLoader(
        DATASETS.build(config),
        batch_size=None,
        num_workers=context.cfg.test_dataloader.get('num_workers', 0),
        collate_fn=np.asarray,
    )
    return np.stack(list(loader))
