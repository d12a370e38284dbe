"""How often the classes of a benchmark are seen again in pools of growing size: by the labels, without any network."""

from __future__ import annotations

import copy

import numpy as np
from mmcv.transforms import LoadAnnotations
from mmseg.registry import DATASETS, TRANSFORMS
from torch.utils.data import DataLoader

from .context import RunContext
from .experiments import REPETITIONS
from .results import RepetitionCurve, RunResult

_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
# Means over fewer draws would show the luck of the draw in the rare classes.
_DRAWS = 100


def repetition_run(context: RunContext) -> RunResult:
    """The curve of the truth of all test images."""
    seen = classes_of_images(context)
    return context.result(len(seen), repetition=(curve(seen, context.pool_options.seed),))


def curve(seen: np.ndarray, seed: int, draws: int = _DRAWS) -> RepetitionCurve:
    """Means over pools that grow in random orders.

    Args:
        seen: (images, C) bool, the classes of each image.
        seed: Of the draws.
        draws: How many orders.
    """
    images, num_classes = seen.shape
    sizes = sorted({size for size in _SIZES if size < images} | {images})
    rng = np.random.RandomState(seed)
    thresholds = np.array(REPETITIONS)[:, None, None]
    total = np.zeros((len(REPETITIONS), len(sizes)))
    for _ in range(draws):
        counts = seen[rng.permutation(images)].cumsum(0, dtype=np.int32)[np.array(sizes) - 1]
        total += (counts >= thresholds).mean(-1)
    at_least = {
        str(times): tuple(round(float(share), 6) for share in row / draws)
        for times, row in zip(REPETITIONS, total, strict=True)
    }
    return RepetitionCurve('labels', tuple(sizes), at_least, num_classes, draws)


class _Present:
    """Last step of a pipeline: which of the classes the label map has. Args: num_classes; ignored label."""

    def __init__(self, num_classes: int, ignore_index: int) -> None:
        self.num_classes, self.ignore_index = num_classes, ignore_index

    def __call__(self, results: dict) -> np.ndarray:
        labels = np.unique(results['gt_seg_map'])
        labels = labels[(labels != self.ignore_index) & (labels < self.num_classes)]
        return np.isin(np.arange(self.num_classes), labels)


def classes_of_images(context: RunContext) -> np.ndarray:
    """(images, C) bool: the classes in the truth of every test image. No image is read, only labels.

    For statistics and for splits, never for a bank.
    """
    config = copy.deepcopy(context.cfg.test_dataloader.dataset)
    steps = [step for step in config.pipeline if issubclass(TRANSFORMS.get(step['type']), LoadAnnotations)]
    config.pipeline = [*steps, _Present(len(context.dataset.metainfo['classes']), context.ignore_index)]
    workers = context.cfg.test_dataloader.get('num_workers', 0)
    loader = DataLoader(DATASETS.build(config), batch_size=None, num_workers=workers, collate_fn=np.asarray)
    return np.stack(list(loader))
