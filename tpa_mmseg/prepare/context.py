"""Pascal Context: labels with 59 classes and a background on images of VOC 2010, from either of its two releases.

``trainval_merged.json`` is what the benchmark is made from. It lists images with their phase (``train``, ``val``,
``test``) and one mask per object or region, each with a category of the 459 that the dataset knows; only the 59
occur. Its predecessor, ``trainval.tar.gz``, has one MATLAB file per image with a number of the same 459 per pixel.
Where the two differ, published numbers mean the first.
"""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from ..errors import TPAError
from . import pairs
from .jobs import Given, Job
from .labels import write
from .layouts import LAYOUTS
from .masks import decode
from .sources import Member, Sources

_LAYOUT = LAYOUTS['context']
_IMAGE_ARCHIVE, _JSON = _LAYOUT.archives.split()

# The 59 classes among the 459 in the order of their labels, 1 to 59, which is that of the alphabet.
# fmt: off
CATEGORIES = (
    2, 9, 18, 19, 22, 23, 25, 31, 33, 34, 44, 45, 46, 59, 65, 68, 72, 80, 85, 98, 104, 105, 113, 115, 144, 158, 159,
    162, 187, 189, 207, 220, 232, 258, 259, 260, 284, 295, 296, 308, 324, 326, 347, 349, 354, 355, 360, 366, 368, 397,
    415, 416, 420, 424, 427, 440, 445, 454, 458,
)
# fmt: on
_ALL = 459
_LABELS = np.zeros(_ALL + 1, dtype=np.uint8)
_LABELS[list(CATEGORIES)] = range(1, len(CATEGORIES) + 1)


def plan(sources: Sources, split: str) -> list[Job]:
    """The jobs that make a split from VOCtrainval_03-May-2010.tar and one of the two releases."""
    images = pairs.find(sources, r'JPEGImages/([\w.-]+)\.jpg', 'JPEGImages/*.jpg', _IMAGE_ARCHIVE)
    merged = sources.one(re.escape(_JSON))
    maps = sources.files(r'([\w.-]+)\.mat')
    if merged is not None:
        listing, convert, recipe = merged, draw, 'json'
        labels = _read_json(merged, split)
        stems = list(labels)
    elif maps:
        # This release has no lists of its own: its splits are those of VOC 2010.
        path = f'ImageSets/Main/{split}.txt'
        (listing,) = pairs.find(sources, f'({re.escape(path)})', path, _IMAGE_ARCHIVE).values()
        convert, recipe = from_map, 'mat'
        stems = listing.read().decode().split()
        labels = pairs.take(maps, stems, '{}.mat', listing)
    else:
        raise TPAError(f'There are no labels in {sources}: add {_JSON} (or trainval.tar.gz) to --source.')
    images = pairs.take(images, stems, 'JPEGImages/{}.jpg', listing)
    text = ''.join(f'{stem}\n' for stem in sorted(stems)).encode()
    names = Job(_LAYOUT.list_file(split), Given(text, 'The list of images'), recipe=recipe)
    return [names, *pairs.jobs(_LAYOUT, split, images, labels, convert, recipe)]


def draw(regions: Mapping) -> bytes:
    """A label picture of one image's regions, later ones over earlier ones.

    Args:
        regions: ``size`` (height, width) and ``regions``, pairs of category and mask.
    """
    labels = np.zeros(regions['size'], dtype=np.uint8)
    for category, mask in regions['regions']:
        if category not in CATEGORIES:
            raise ValueError(f'holds the category {category}, which is none of the 59')
        labels[decode(mask, *regions['size'])] = _LABELS[category]
    return write(labels)


def from_map(content: bytes) -> bytes:
    """A label picture from a MATLAB file: the 59 classes keep a label, the other 400 are background."""
    try:
        from scipy.io import loadmat  # MMSegmentation brings it; nothing else here needs it
    except ImportError as error:
        raise TPAError('The MATLAB files of Pascal Context need scipy: pip install scipy.') from error
    try:
        numbers = loadmat(io.BytesIO(content))['LabelMap']
    except Exception as error:  # a damaged file can raise almost anything
        raise ValueError('is no MATLAB file with a LabelMap') from error
    if numbers.ndim != 2 or numbers.max() > _ALL:
        raise ValueError(f'holds a LabelMap of shape {numbers.shape} up to {numbers.max()} instead of {_ALL}')
    return write(_LABELS[numbers])


def _read_json(file: Member, split: str) -> dict[str, Given]:
    """Name -> size and regions of the images of a split."""
    try:
        content = json.loads(file.read(), object_hook=_needed)
        regions = defaultdict(list)
        for region in content['annos_segmentation']:
            regions[region['image_id']].append((region['category_id'], region['segmentation']))
        labels = {}
        for image in content['images']:
            if image['phase'] == split:
                stem = image['file_name'].removesuffix('.jpg')
                drawing = {'size': (image['height'], image['width']), 'regions': regions[image['image_id']]}
                labels[stem] = Given(drawing, f'{stem} in {file}')
    except (ValueError, KeyError, TypeError) as error:
        raise TPAError(f'{file} is not the {_JSON} of Pascal Context ({error!r}): download it again.') from error
    return labels


def _needed(item: dict) -> dict | None:
    """Drops, while the file is read, most of its 590 MB: parts of objects, boundaries, occlusions and key points."""
    if 'phase' in item or 'counts' in item or 'annos_segmentation' in item:
        return item
    if 'category_id' in item and 'segmentation' in item:
        return {key: item[key] for key in ('image_id', 'category_id', 'segmentation')}
    return None
