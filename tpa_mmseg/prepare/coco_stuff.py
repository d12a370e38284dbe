"""COCO-Stuff 164k: the labels of things and stuff are numbered consecutively."""

from __future__ import annotations

from . import pairs
from .jobs import Job
from .labels import Relabeling, with_ignored
from .layouts import LAYOUTS
from .sources import Member, Sources

_LAYOUT = LAYOUTS['coco_stuff']
_LABEL_ARCHIVE = 'stuffthingmaps_trainval2017.zip'

# Pixel values are COCO's categories minus one: things below 91, stuff above. These were never used.
_UNUSED = (11, 25, 28, 29, 44, 65, 67, 68, 70, 82, 90)
RAW_IDS = tuple(raw for raw in range(182) if raw not in _UNUSED)
THINGS = 80

relabel = Relabeling(with_ignored({raw: train for train, raw in enumerate(RAW_IDS)}), 'an id of COCO-Stuff')


def plan(sources: Sources, split: str) -> list[Job]:
    """Returns the jobs that make a split from val2017.zip or train2017.zip and stuffthingmaps_trainval2017.zip."""
    images = find_images(sources, split)
    labels = pairs.find(sources, rf'{split}2017/(\d+)\.png', f'{split}2017/*.png', _LABEL_ARCHIVE)
    labels = pairs.take(labels, images, f'{split}2017/{{}}.png', f'an image of {split}2017')
    return pairs.jobs(_LAYOUT, split, images, labels, relabel, 'train ids')


def find_images(sources: Sources, split: str) -> dict[str, Member]:
    """Returns number -> image."""
    return pairs.find(sources, rf'{split}2017/(\d+)\.jpg', f'{split}2017/*.jpg', f'{split}2017.zip')
