"""ADE20K as its scene parsing challenge of 2016 has it: the files as they are.

Labels keep their numbers, 1 to 150 and 0 for what is not scored. The dataset class turns them into 0 to 149.
"""

from __future__ import annotations

from . import pairs
from .jobs import Job
from .layouts import LAYOUTS
from .sources import Sources

_LAYOUT = LAYOUTS['ade20k']


def plan(sources: Sources, split: str) -> list[Job]:
    """The jobs that make a split from ADEChallengeData2016.zip."""
    folder = _LAYOUT.splits[split]
    image, label = f'images/{folder}/{{}}.jpg', f'annotations/{folder}/{{}}.png'
    images = pairs.find(sources, image.format(r'([\w-]+)'), image.format('*'), _LAYOUT.archives)
    labels = pairs.find(sources, label.format(r'([\w-]+)'), label.format('*'), _LAYOUT.archives)
    labels = pairs.take(labels, images, label, f'an image of images/{folder}')
    return pairs.jobs(_LAYOUT, split, images, labels)
