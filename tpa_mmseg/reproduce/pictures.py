"""Pictures of what TPA changes, where it helps most, as usual, and where it harms most; and of where anchors are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from ..core import anchor_map
from ..evaluation.counts import Truth, count_classes, count_hits
from ..io import write_png
from ..visualization import anchor_figure, class_palette, comparison, panel_size, read_image
from ..visualization.panels import fit_image, label_panel
from .context import RunContext
from .experiments import EXPERIMENTS
from .results import Picture, RunResult
from .scoring import Prediction, predict


def pictures_run(context: RunContext) -> RunResult:
    """Draws a comparison of chosen images, which are chosen among all test images."""
    adapters = context.adapters(context.build_banks(context.pool()))
    indices = range(len(context.dataset))
    classes = len(context.dataset.metainfo['classes'])
    predicted = predict(context, indices, adapters)
    gains = [image_gain(found.counted, found.host, found.adapted['full'], classes) for found in predicted]
    pictures: list[Picture] = []
    for name, position in choose(gains):
        (found,) = predict(context, [position], adapters)
        pictures += _draw(context, found, name, gains[position])
    return context.result(len(indices), pictures=tuple(pictures))


def anchors_run(context: RunContext) -> RunResult:
    """Draws the anchors of one of the pool's first images. Without a bank: anchors are what banks are made from."""
    pool, rule = context.pool(), context.model.anchor_rule
    pool = pool.subset(range(min(EXPERIMENTS['anchors'].most, len(pool))))
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


def choose(gains: Sequence[float]) -> list[tuple[str, int]]:
    """Which images are drawn: ``best-1``, ``typical-1``, ... and their positions, each image once."""
    ranked = sorted(range(len(gains)), key=lambda position: -gains[position])
    middle = float(np.median(gains))
    usual = sorted(ranked, key=lambda position: abs(gains[position] - middle))
    chosen: dict[str, int] = {}
    for name, order in {'best-1': ranked, 'worst-1': ranked[::-1], 'typical-1': usual}.items():
        free = [position for position in order if position not in chosen.values()]
        chosen.update((name, position) for position in free[:1])
    return sorted(chosen.items())


def image_gain(truth: Truth, host: Tensor, tpa: Tensor, num_classes: int) -> float:
    """Change of the mean IoU of the classes that an image has, in percentage points; 0 where no pixel counts.

    Args:
        truth: From :func:`~tpa_mmseg.evaluation.counts.checked_truth`.
        host, tpa: (H, W) labels.
        num_classes: Number of classes C.
    """
    true = count_classes(truth.labels, num_classes)
    present = true > 0
    if not present.any():
        return 0.0
    means = []
    for labels in (host, tpa):
        right, given = count_hits(labels, truth, num_classes)
        means.append(float((right / (given + true - right))[present].mean()))
    return round(100 * (means[1] - means[0]), 2)


def _draw(context: RunContext, found: Prediction, name: str, gain: float) -> list[Picture]:
    """Writes the pictures of an image."""
    path = found.sample.img_path
    image, meta = read_image(path), context.dataset.metainfo
    classes, palette = meta['classes'], meta.get('palette')
    host, tpa, truth = (labels.cpu().numpy() for labels in (found.host, found.adapted['full'], found.truth))
    choice, title = name.split('-')[0], Path(path).name
    about = f'{gain:+.1f} points of mIoU over its classes with TPA ({choice} of all images).'
    drawn = {
        'comparison': (comparison(tpa, classes, host, truth, image, palette, context.ignore_index), about),
        'host': (_overlay(host, classes, image, palette), 'labels of the host alone.'),
        'tpa': (_overlay(tpa, classes, image, palette), 'labels with TPA.'),
    }
    pictures = []
    for kind, (picture, caption) in drawn.items():
        file = f'pictures/{name}-{kind}.png'
        write_png(context.folder.path / file, picture)
        pictures.append(Picture(file, kind, choice, title, f'{title}: {caption}', gain))
    return pictures


def _overlay(labels: np.ndarray, classes: Sequence[str], image: Image.Image | None, palette) -> Image.Image:
    """The labels of an image in their colors, over the image if it can be read."""
    size = panel_size(*labels.shape)
    panel = label_panel(labels, class_palette(len(classes), palette), size)
    return panel if image is None else Image.blend(fit_image(image, size), panel, 0.65)
