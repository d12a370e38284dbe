"""How often the classes of a benchmark are seen again in pools of growing size: by the labels, without any network."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
from mmcv.transforms import LoadAnnotations
from mmseg.registry import DATASETS, TRANSFORMS
from torch.utils.data import DataLoader

from .context import RunContext
from .results import RepetitionCurve, RunResult

# Classes are counted that are seen in at least so many images of the pool.
_TIMES = (1, 2, 5, 10)
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
    thresholds = np.array(_TIMES)[:, None, None]
    total = np.zeros((len(_TIMES), len(sizes)))
    for _ in range(draws):
        counts = seen[rng.permutation(images)].cumsum(0, dtype=np.int32)[np.array(sizes) - 1]
        total += (counts >= thresholds).mean(-1)
    at_least = {
        str(times): tuple(round(float(share), 6) for share in row / draws)
        for times, row in zip(_TIMES, total, strict=True)
    }
    return RepetitionCurve('labels', tuple(sizes), at_least, num_classes, draws)


def _present(results: dict, num_classes: int, ignore_index: int) -> np.ndarray:
    """Last step of a pipeline: which of the classes the label map has."""
    labels = np.unique(results['gt_seg_map'])
    return np.isin(np.arange(num_classes), labels[labels != ignore_index])


def classes_of_images(context: RunContext) -> np.ndarray:
    """(images, C) bool: the classes in the truth of every test image. No image is read, only labels.

    For statistics and for splits, never for a bank.
    """
    config = copy.deepcopy(context.cfg.test_dataloader.dataset)
    steps = [step for step in config.pipeline if issubclass(TRANSFORMS.get(step['type']), LoadAnnotations)]
    count = len(context.dataset.metainfo['classes'])
    config.pipeline = [*steps, partial(_present, num_classes=count, ignore_index=context.ignore_index)]
    dataset = DATASETS.build(config)
    return np.stack(list(DataLoader(dataset, None, num_workers=context.num_workers, collate_fn=np.asarray)))
