"""A picture of where anchors are, in the pool image that has them of the most classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..core import anchor_map
from ..io import write_png
from ..visualization import anchor_figure, read_image
from .context import RunContext
from .experiments import ANCHORS_LOOKED_AT
from .results import Picture, RunResult


def anchors_run(context: RunContext) -> RunResult:
    """Draws the anchors of one of the pool's first images. Without a bank: anchors are what banks are made from."""
    pool, rule = context.pool(), context.model.anchor_rule
    pool = pool.subset(range(min(ANCHORS_LOOKED_AT, len(pool))))
    best, most, path = None, -1, ''
    for done, data in enumerate(context.images(pool), start=1):
        ((evidence, sample),) = context.model.look(data, encoders=())
        anchors = anchor_map(evidence.scores, rule).cpu().numpy()
        counts = np.bincount(anchors.ravel() + 1)[1:]
        classes = int((counts >= max(1, rule.k_min)).sum())
        if classes > most:
            best, most, path = anchors, classes, sample.img_path
        context.say(done, len(pool))
    meta, title, file = context.dataset.metainfo, Path(path).name, 'pictures/most-anchors.png'
    write_png(context.folder.path / file, anchor_figure(best, meta['classes'], read_image(path), meta.get('palette')))
    share = 100 * float((best >= 0).mean())
    caption = f'{title}: {share:.0f} % of the pixels are anchors, of {most} classes.'
    return context.result(len(pool), pictures=(Picture(file, 'anchors', 'most', title, caption, None),))
