"""Cityscapes: label ids are converted to the 19 classes that are scored."""

from __future__ import annotations

from . import pairs
from .jobs import Job
from .labels import Relabeling
from .layouts import IGNORED, LAYOUTS
from .sources import Sources

_LAYOUT = LAYOUTS['cityscapes']
_IMAGES, _LABELS = _LAYOUT.archives.split()

# road, sidewalk, building, wall, fence, pole, traffic light, traffic sign, vegetation, terrain, sky, person, rider,
# car, truck, bus, train, motorcycle, bicycle
SCORED = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)
_IDS = range(34)

relabel = Relabeling(
    {identity: SCORED.index(identity) if identity in SCORED else IGNORED for identity in _IDS}, 'an id of Cityscapes'
)


def plan(sources: Sources, split: str) -> list[Job]:
    """Returns the jobs that make a split from leftImg8bit_trainvaltest.zip and gtFine_trainvaltest.zip."""
    # An image is identified by the name of its city and its own name.
    stem, image, label = (
        r'([\w-]+/[\w-]+)',
        f'leftImg8bit/{split}/{{}}_leftImg8bit.png',
        f'gtFine/{split}/{{}}_gtFine_labelIds.png',
    )
    images = pairs.find(sources, image.format(stem), image.format('*/*'), _IMAGES)
    labels = pairs.find(sources, label.format(stem), label.format('*/*'), _LABELS)
    labels = pairs.take(labels, images, label, f'an image of leftImg8bit/{split}')
    return pairs.jobs(_LAYOUT, split, images, labels, relabel, 'train ids')
