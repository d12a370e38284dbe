"""ADE20K of the scene parsing challenge of 2016: the files unchanged.

Labels keep their values, 1 to 150 and 0 for pixels that are not scored. The dataset class converts them to 0 to 149.
"""

from __future__ import annotations

from . import pairs
from .jobs import Job
from .layouts import LAYOUTS
from .sources import Sources

_LAYOUT = LAYOUTS['ade20k']


def plan(sources: Sources, split: str) -> list[Job]:
    """Returns the jobs that make a split from ADEChallengeData2016.zip."""
    folder = _LAYOUT.splits[split]
    image, label = f'images/{folder}/{{}}.jpg', f'annotations/{folder}/{{}}.png'
    images = pairs.find(sources, image.format(r'([\w-]+)'), image.format('*'), _LAYOUT.archives)
    labels = pairs.find(sources, label.format(r'([\w-]+)'), label.format('*'), _LAYOUT.archives)
    labels = pairs.take(labels, images, label, f'an image of images/{folder}')
    return pairs.jobs(_LAYOUT, split, images, labels)
