"""How often the classes of a benchmark are seen again in pools of growing size."""

from __future__ import annotations

import numpy as np
import torch

from ..core import anchor_map
from .context import RunContext
from .experiments import REPETITIONS
from .results import RepetitionCurve, RunResult
from .truth import classes_of_images

_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)


def repetition_run(context: RunContext) -> RunResult:
    """Curves by the truth of all test images, and by the anchors that the host finds in the pool."""
    by_labels = classes_of_images(context)
    order = np.random.RandomState(context.pool_options.seed).permutation(len(by_labels))
    pool = context.pool()
    by_anchors = _seen_by_the_host(context)
    # The images of a pool come in the order of the dataset; a pool grows in the order of the draw.
    place = {index: row for row, index in enumerate(pool.indices)}
    drawn = [place[index] for index in order.tolist() if index in place]
    curves = curve('labels', by_labels[order]), curve('anchors', by_anchors[drawn])
    return context.result(len(pool), repetition=curves)


def curve(source: str, seen: np.ndarray) -> RepetitionCurve:
    """The curve of images in their order. Args: source; seen, (images, C) bool."""
    sizes = sorted({size for size in _SIZES if size < len(seen)} | {len(seen)})
    counts = seen.cumsum(0)
    at_least = {
        str(times): tuple(round(float((counts[size - 1] >= times).mean()), 4) for size in sizes)
        for times in REPETITIONS
    }
    return RepetitionCurve(source, tuple(sizes), at_least)


def _seen_by_the_host(context: RunContext) -> np.ndarray:
    """(pool images, C) bool: the classes that would get anchors from each image."""
    rule, pool = context.model.anchor_rule, context.pool()
    rows = []
    context.say(0, len(pool))
    for data in context.images(pool):
        for evidence, _ in context.model.look(data, encoders=()):
            anchors = anchor_map(evidence.scores, rule)
            counts = torch.bincount(anchors.flatten() + 1, minlength=evidence.scores.num_classes + 1)[1:]
            rows.append((counts >= max(1, rule.k_min)).cpu().numpy())
        context.say(len(rows), len(pool))
    return np.stack(rows)
