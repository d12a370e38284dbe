"""What labels say about pools: how often their classes are seen again, and how many they share with the test.

Labels are used for statistics and to choose pools, and for nothing else: banks are made from images alone.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial

import numpy as np
from mmcv.transforms import LoadAnnotations
from mmseg.registry import DATASETS, TRANSFORMS
from torch.utils.data import DataLoader

from ..datasets import PoolOptions
from .context import RunContext
from .results import OverlapSplit, RepetitionCurve, RunResult
from .scoring import score

#: Classes are counted that are seen in at least so many images of the pool.
TIMES = (1, 2, 5, 10)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
# Means over fewer draws would show the luck of the draw in the rare classes.
_DRAWS = 100
# The low pool may have this share of the evaluated classes. Pools get smaller for that, down to so many images.
_SHARED, _SMALLEST = 0.5, 5


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
    thresholds = np.array(TIMES)[:, None, None]
    total = np.zeros((len(TIMES), len(sizes)))
    for _ in range(draws):
        counts = seen[rng.permutation(images)].cumsum(0, dtype=np.int32)[np.array(sizes) - 1]
        total += (counts >= thresholds).mean(-1)
    at_least = {
        str(times): tuple(round(float(share), 6) for share in row / draws)
        for times, row in zip(TIMES, total, strict=True)
    }
    return RepetitionCurve('labels', tuple(sizes), at_least, num_classes, draws)


def overlap_run(context: RunContext) -> RunResult:
    """Scores one half of the test set with banks from three pools of the other half."""
    seen = classes_of_images(context)
    evaluation, pools = make_splits(seen, len(context.pool()), context.pool_options.seed)
    banks = context.build_banks(context.pool(PoolOptions(fraction=1.0)), pools)
    classes = context.dataset.metainfo['classes']
    overlaps = tuple(describe(key, seen, pool, evaluation, classes) for key, pool in pools.items())
    host, variants = score(context, evaluation, banks, {split.key: split.overlap for split in overlaps})
    return context.result(len(evaluation), host=host, variants=variants, overlap=overlaps)


def make_splits(seen: np.ndarray, size: int, seed: int) -> tuple[list[int], dict[str, list[int]]]:
    """Evaluation images, the same for all splits, and the pools, all of one size and apart from them.

    The low pool has only images without a held-out set of classes, and that set is as large as the data allow.

    Args:
        seen: (images, C) bool, the classes of each image.
        size: Images in a pool, at most. Also at most a third of the candidates: more would leave hardly a choice.
        seed: Decides the halves and the random pool.
    """
    order = np.random.RandomState(seed).permutation(len(seen))
    half = len(seen) // 2
    evaluation, candidates = sorted(order[half:].tolist()), order[:half]
    low = _few_classes(seen, candidates, max(1, min(size, half // 3)), seen[evaluation].any(0))
    target, size = seen[evaluation].mean(0), len(low)
    pools = {'high': _similar(seen, candidates, target, size), 'random': candidates[:size].tolist(), 'low': low}
    return evaluation, {key: sorted(pool) for key, pool in pools.items()}


def _few_classes(seen: np.ndarray, candidates: np.ndarray, size: int, evaluated: np.ndarray) -> list[int]:
    """Images that have as few of the evaluated classes as possible together: most of those are held out of the pool.

    Images are picked one after the other, each the one that adds the fewest classes (of equals, the one whose classes
    most candidates have, because those then come without a new class). It ends before most classes are in.
    """
    wanted = seen[:, evaluated]
    frequency = wanted[candidates].mean(0)
    left, held = candidates.tolist(), np.zeros(wanted.shape[1], bool)
    chosen: list[int] = []
    while len(chosen) < size:
        new = wanted[left] & ~held
        best = int(np.lexsort((-(new @ frequency), new.sum(1)))[0])
        if (held | new[best]).mean() > _SHARED and len(chosen) >= min(size, _SMALLEST):
            break
        held |= new[best]
        chosen.append(left.pop(best))
    return chosen


def _similar(seen: np.ndarray, candidates: np.ndarray, target: np.ndarray, size: int) -> list[int]:
    """Images picked one after the other, each the one that makes the overlap highest."""
    chosen: list[int] = []
    left = candidates.tolist()
    counts = np.zeros(seen.shape[1])
    for number in range(1, size + 1):
        best = int(similarity((counts + seen[left]) / number, target).argmax())
        counts += seen[left[best]]
        chosen.append(left.pop(best))
    return chosen


def similarity(shares: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Sum of the smaller shares over sum of the larger. Args: shares (..., C); target (C,). Returns: (...)."""
    larger = np.maximum(shares, target).sum(-1)
    return np.divide(np.minimum(shares, target).sum(-1), larger, out=np.zeros_like(larger), where=larger > 0)


def describe(
    key: str, seen: np.ndarray, pool: list[int], evaluation: list[int], classes: Sequence[str]
) -> OverlapSplit:
    """What the report says about a pool."""
    present, wanted = seen[pool].any(0), seen[evaluation].any(0)
    return OverlapSplit(
        key=key,
        overlap=round(float(similarity(seen[pool].mean(0), seen[evaluation].mean(0))), 4),
        classes_shared=round(float((present & wanted).sum() / max(1, wanted.sum())), 4),
        pool_images=len(pool),
        evaluation_images=len(evaluation),
        shared=tuple(classes[index] for index in np.flatnonzero(present & wanted)),
    )


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
