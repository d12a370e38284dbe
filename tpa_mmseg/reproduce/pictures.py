"""Pictures of what TPA changes: images where it helps most, where it does as usual, and where it harms most."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..core import anchor_map
from ..io import write_png
from ..visualization import anchor_figure, comparison, read_image
from .experiments import PICTURES_LOOKED_AT
from .results import Picture, RunResult
from .session import Session
from .shared_pass import Prediction

# How many of each kind are drawn.
_CHOICES = {'best': 3, 'typical': 3, 'worst': 2}


def pictures_run(session: Session) -> RunResult:
    """Draws a comparison and the anchors of chosen images."""
    pool = session.pool()
    session.shared.build_banks(session.named(pool), {'full': set(pool.names())})
    order = np.random.RandomState(session.pool_options.seed).permutation(len(session.dataset))
    indices = sorted(order[:PICTURES_LOOKED_AT].tolist())
    gains: list[float] = []
    session.say(0, len(indices))
    for data in session.images(session.dataset, indices):
        gains += [_gain(session, found) for found in session.shared.predict(data)]
        session.say(len(gains), len(indices))
    pictures: list[Picture] = []
    for name, position in choose(gains):
        (data,) = session.images(session.dataset, [indices[position]])
        (found,) = session.shared.predict(data)
        pictures += _draw(session, found, name, gains[position])
    return session.result(len(indices), pictures=tuple(pictures))


def choose(gains: Sequence[float]) -> list[tuple[str, int]]:
    """Which images are drawn: ``best-1``, ``typical-1``, ... and their positions, each image once."""
    ranked = sorted(range(len(gains)), key=lambda position: -gains[position])
    middle = float(np.median(gains))
    orders = {
        'best': ranked,
        'worst': ranked[::-1],
        'typical': sorted(ranked, key=lambda position: abs(gains[position] - middle)),
    }
    taken: dict[int, str] = {}
    for choice, order in orders.items():
        free = [position for position in order if position not in taken]
        for number, position in enumerate(free[: _CHOICES[choice]], start=1):
            taken[position] = f'{choice}-{number}'
    return sorted(((name, position) for position, name in taken.items()), key=lambda pair: _rank(pair[0]))


def _rank(name: str) -> tuple[int, str]:
    return list(_CHOICES).index(name.split('-')[0]), name


def _gain(session: Session, found: Prediction) -> float:
    """Change of the share of right pixels in percentage points; 0 where no pixel counts."""
    truth = found.truth.to(found.host)
    counts = truth != session.cfg.test_evaluator.get('ignore_index', 255)
    right = [((labels == truth) & counts).sum() for labels in (found.host, found.labels['full'])]
    return round(100 * float((right[1] - right[0]) / counts.sum().clamp(min=1)), 2)


def _draw(session: Session, found: Prediction, name: str, gain: float) -> list[Picture]:
    """Writes both pictures of an image."""
    path = found.sample.img_path
    image, meta = read_image(path), session.dataset.metainfo
    classes, palette = meta['classes'], meta.get('palette')
    anchors = anchor_map(found.scores, session.shared.models['full'].rule).cpu().numpy()
    host, tpa, truth = (labels.cpu().numpy() for labels in (found.host, found.labels['full'], found.truth))
    ignore_index = session.cfg.test_evaluator.get('ignore_index', 255)
    drawn = {
        'comparison': comparison(tpa, classes, host, truth, image, palette, ignore_index),
        'anchors': anchor_figure(anchors, classes, image, palette),
    }
    choice, title = name.split('-')[0], Path(path).name
    captions = {
        'comparison': f'{title}: {gain:+.1f} points of right pixels with TPA ({choice} of the images looked at).',
        'anchors': f'{title}: {100 * float((anchors >= 0).mean()):.0f} % of the pixels are anchors.',
    }
    pictures = []
    for kind, picture in drawn.items():
        file = f'pictures/{name}-{kind}.png'
        write_png(session.folder.path / file, picture)
        pictures.append(Picture(file, kind, choice, title, captions[kind], gain))
    return pictures
