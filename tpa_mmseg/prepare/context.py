"""Pascal Context: labels with 59 classes and a background on images of VOC 2010, from either of its two releases.

The benchmark is made from ``trainval_merged.json``. It lists images with their phase (``train``, ``val``, ``test``)
and one mask per object or region, each with one of the 459 categories of the dataset; only 59 of them occur. Its
predecessor, ``trainval.tar.gz``, has one MATLAB file per image with one of the same 459 categories per pixel.
Published results are based on the first.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from ..errors import TPAError
from ..io import parse_json
from . import pairs
from .jobs import InMemory, Job
from .labels import write
from .layouts import LAYOUTS
from .masks import draw_masks, pycocotools_mask
from .sources import Member, Sources

_LAYOUT = LAYOUTS['context']
_IMAGE_ARCHIVE, _JSON = _LAYOUT.archives.split()

# The 59 classes among the 459 categories in the order of their labels, 1 to 59, which is alphabetical.
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
_FROM_CATEGORY = {category: int(_LABELS[category]) for category in CATEGORIES}
# Images of VOC have at most 500 x 500.
_MAP_PIXELS = 2**24


def plan(sources: Sources, split: str) -> list[Job]:
    """Returns the jobs that make a split from VOCtrainval_03-May-2010.tar and one of the two releases."""
    images = pairs.find(sources, r'JPEGImages/([\w.-]+)\.jpg', 'JPEGImages/*.jpg', _IMAGE_ARCHIVE)
    merged = sources.one(re.escape(_JSON))
    maps = sources.files(r'([\w.-]+)\.mat')
    if merged is not None:
        listing, convert, recipe = merged, draw, 'json'
        labels = _read_json(merged, split)
        stems = list(labels)
    elif maps:
        # This release has no lists: its splits are those of VOC 2010.
        path = f'ImageSets/Main/{split}.txt'
        (listing,) = pairs.find(sources, f'({re.escape(path)})', path, _IMAGE_ARCHIVE).values()
        convert, recipe = from_map, 'mat'
        stems = listing.read().decode().split()
        labels = pairs.take(maps, stems, '{}.mat', listing)
    else:
        raise TPAError(f'No labels in {sources}. Add {_JSON} (or trainval.tar.gz) to --source.')
    images = pairs.take(images, stems, 'JPEGImages/{}.jpg', listing)
    text = ''.join(f'{stem}\n' for stem in sorted(stems)).encode()
    names = Job(_LAYOUT.list_file(split), InMemory(text, 'The list of images'), recipe=recipe)
    return [names, *pairs.jobs(_LAYOUT, split, images, labels, convert, recipe)]


def draw(regions: Mapping) -> bytes:
    """Draws the label image of one image, later regions over earlier ones.

    Args:
        regions: ``size`` (height, width) and ``regions``, each with its id, category and mask.
    """
    return draw_masks(regions['size'], regions['regions'], _FROM_CATEGORY)


def from_map(content: bytes) -> bytes:
    """Converts a MATLAB file to a label image: the 59 classes get labels, the other 400 are background."""
    try:
        from scipy.io import loadmat, whosmat  # nothing else here needs it
    except ImportError as error:
        raise TPAError('The MATLAB files of Pascal Context need scipy. Install it with: pip install scipy') from error
    try:
        # Nothing else is read: a small file may unfold to much memory, and nested cells end the process.
        ((shape, kind),) = (found[1:] for found in whosmat(io.BytesIO(content)) if found[0] == 'LabelMap')
        if kind not in ('uint8', 'uint16') or len(shape) != 2 or not 0 < shape[0] * shape[1] <= _MAP_PIXELS:
            raise ValueError(f'a LabelMap of shape {shape} and type {kind}')
        numbers = loadmat(io.BytesIO(content), variable_names=['LabelMap'])['LabelMap']
        if not 0 <= numbers.min() <= numbers.max() <= _ALL:
            raise ValueError(f'a LabelMap with values from {numbers.min()} to {numbers.max()} instead of {_ALL}')
        return write(_LABELS[numbers])
    except Exception as error:  # a damaged file can raise almost anything
        raise ValueError(f'is not a MATLAB file with a LabelMap ({error})') from error


def _read_json(file: Member, split: str) -> dict[str, InMemory]:
    """Returns name -> size and regions of the images of a split."""
    pycocotools_mask()  # is it installed? Not after minutes of reading
    try:
        content = parse_json(file.read(), _needed)
        regions = defaultdict(list)
        for region in content['annos_segmentation']:
            regions[region['image_id']].append((region['id'], region['category_id'], region['segmentation']))
        labels = {}
        for image in content['images']:
            if image['phase'] == split:
                stem = image['file_name'].removesuffix('.jpg')
                drawing = {'size': (image['height'], image['width']), 'regions': regions[image['image_id']]}
                labels[stem] = InMemory(drawing, f'{stem} in {file}')
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TPAError(f'{file} is not the {_JSON} of Pascal Context ({error!r}). Download it again.') from error
    return labels


def _needed(item: dict) -> dict | None:
    """Drops most of the 590 MB while the file is read: object parts, boundaries, occlusions and key points."""
    if 'phase' in item or 'counts' in item or 'annos_segmentation' in item:
        return item
    if 'category_id' in item and 'segmentation' in item:
        return {'id': item.get('id'), **{key: item[key] for key in ('image_id', 'category_id', 'segmentation')}}
    return None
