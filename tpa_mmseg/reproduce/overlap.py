"""Pools whose labels overlap much, by chance, or little with those of the evaluation images.

Labels are used to choose the pools and for nothing else: the banks are made from the images alone.
"""

from __future__ import annotations

import numpy as np

from ..datasets import Pool, PoolOptions
from .context import RunContext
from .results import OverlapSplit, RunResult
from .scoring import score
from .truth import classes_of_images


def overlap_run(context: RunContext) -> RunResult:
    """Scores one half of the test set with banks from three pools of the other half."""
    seen = classes_of_images(context)
    evaluation, pools = make_splits(seen, _pool_size(context), context.pool_options.seed)
    whole = context.pool(PoolOptions(fraction=1.0))
    wanted = Pool(whole.dataset, sorted(set().union(*pools.values())), whole.root)
    names = dict(zip(wanted.indices, wanted.names(), strict=True))
    members = {key: frozenset(names[index] for index in pool) for key, pool in pools.items()}
    banks = context.build_banks(wanted, members)
    overlaps = tuple(describe(key, seen, pool, evaluation) for key, pool in pools.items())
    host, variants = score(context, evaluation, banks, {split.key: split.overlap for split in overlaps})
    return context.result(len(evaluation), host=host, variants=variants, overlap=overlaps)


def _pool_size(context: RunContext) -> int:
    """The config's pool, or a third of the candidates: a choice among fewer would hardly be one."""
    candidates = len(context.dataset) // 2
    return max(1, min(len(context.pool()), candidates // 3))


def make_splits(seen: np.ndarray, size: int, seed: int) -> tuple[list[int], dict[str, list[int]]]:
    """Evaluation images, the same for all splits, and the pools, all of one size and apart from them.

    Args:
        seen: (images, C) bool, the classes of each image.
        size: Images in a pool.
        seed: Decides the halves and the random pool.
    """
    order = np.random.RandomState(seed).permutation(len(seen))
    half = len(seen) // 2
    evaluation, candidates = sorted(order[half:].tolist()), order[:half]
    target = seen[evaluation].mean(0)
    pools = {
        'high': _greedy(seen, candidates, target, size, most=True),
        'random': candidates[:size].tolist(),
        'low': _greedy(seen, candidates, target, size, most=False),
    }
    return evaluation, {key: sorted(pool) for key, pool in pools.items()}


def _greedy(seen: np.ndarray, candidates: np.ndarray, target: np.ndarray, size: int, most: bool) -> list[int]:
    """Images picked one after the other, each the one that makes the overlap highest (or lowest)."""
    chosen: list[int] = []
    left = candidates.tolist()
    counts = np.zeros(seen.shape[1])
    for number in range(1, size + 1):
        values = similarity((counts + seen[left]) / number, target)
        best = int(values.argmax() if most else values.argmin())
        counts += seen[left[best]]
        chosen.append(left.pop(best))
    return chosen


def similarity(shares: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Sum of the smaller shares over sum of the larger. Args: shares (..., C); target (C,). Returns: (...)."""
    larger = np.maximum(shares, target).sum(-1)
    return np.divide(np.minimum(shares, target).sum(-1), larger, out=np.zeros_like(larger), where=larger > 0)


def describe(key: str, seen: np.ndarray, pool: list[int], evaluation: list[int]) -> OverlapSplit:
    """What the report says about a pool."""
    present, wanted = seen[pool].any(0), seen[evaluation].any(0)
    return OverlapSplit(
        key=key,
        overlap=round(float(similarity(seen[pool].mean(0), seen[evaluation].mean(0))), 4),
        classes_shared=round(float((present & wanted).sum() / max(1, wanted.sum())), 4),
        pool_images=len(pool),
        evaluation_images=len(evaluation),
    )
