"""Pascal VOC 2012: the files unchanged, but only those that a split needs."""

from __future__ import annotations

import re

from . import pairs
from .jobs import Job
from .layouts import LAYOUTS
from .sources import Sources

_LAYOUT = LAYOUTS['voc']


def plan(sources: Sources, split: str) -> list[Job]:
    """Returns the jobs that make a split from VOCtrainval_11-May-2012.tar."""
    path = _LAYOUT.list_file(split)
    (listing,) = pairs.find(sources, f'({re.escape(path)})', path, _LAYOUT.archives).values()
    images = pairs.find(sources, r'JPEGImages/([\w.-]+)\.jpg', 'JPEGImages/*.jpg', _LAYOUT.archives)
    labels = pairs.find(sources, r'SegmentationClass/([\w.-]+)\.png', 'SegmentationClass/*.png', _LAYOUT.archives)
    stems = listing.read().decode().split()
    images = pairs.take(images, stems, 'JPEGImages/{}.jpg', listing)
    labels = pairs.take(labels, stems, 'SegmentationClass/{}.png', listing)
    return [Job(path, listing), *pairs.jobs(_LAYOUT, split, images, labels)]
