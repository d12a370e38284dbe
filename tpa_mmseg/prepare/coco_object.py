"""COCO-Object: the 80 thing classes of COCO; everything else is background.

The labels of the benchmark come from those of COCO-Stuff. Labels from the instance annotations have the same objects,
but if two of them overlap, another one may be on top.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from ..errors import TPAError
from ..io import parse_json
from . import pairs
from .coco_stuff import RAW_IDS, THINGS, find_images
from .jobs import InMemory, Job
from .labels import Relabeling
from .layouts import IGNORED, LAYOUTS
from .masks import draw_masks, pycocotools_mask
from .sources import Member, Sources

_LAYOUT = LAYOUTS['coco_object']

# In the published conversion all pixels are scored: the unlabeled ones of COCO-Stuff are background too.
_FROM_RAW = {raw: (train + 1 if train < THINGS else 0) for train, raw in enumerate(RAW_IDS)} | {IGNORED: 0}
_FROM_TRAIN = {train: (train + 1 if train < THINGS else 0) for train in range(len(RAW_IDS))} | {IGNORED: 0}
_FROM_CATEGORY = {raw + 1: label for raw, label in _FROM_RAW.items() if label}


def plan(sources: Sources, split: str) -> list[Job]:
    """Returns the jobs that make a split from val2017.zip or train2017.zip and the first of these sources of labels.

    The labels of COCO-Stuff (stuffthingmaps_trainval2017.zip), those of the prepared COCO-Stuff dataset, or the
    instance annotations (annotations_trainval2017.zip).
    """
    images = find_images(sources, split)
    for ending, numbers in (('.png', _FROM_RAW), ('_labelTrainIds.png', _FROM_TRAIN)):
        labels = sources.files(rf'{split}2017/(\d+){re.escape(ending)}')
        if labels:
            labels = pairs.take(labels, images, f'{split}2017/{{}}{ending}', f'an image of {split}2017')
            return pairs.jobs(_LAYOUT, split, images, labels, Relabeling(numbers, 'an id of COCO-Stuff'), 'stuff')
    instances = sources.one(rf'instances_{split}2017\.json')
    if instances is None:
        raise TPAError(
            f'No labels of {split}2017 in {sources}. Add stuffthingmaps_trainval2017.zip, '
            'the prepared COCO-Stuff folder or annotations_trainval2017.zip to --source.'
        )
    return pairs.jobs(_LAYOUT, split, images, _read_instances(instances, images), draw, 'instances')


def draw(instances: Mapping) -> bytes:
    """Draws the label image of one image: later instances over earlier ones, and all of them over crowds.

    Args:
        instances: ``size`` (height, width) and ``objects``, annotations of COCO.
    """
    objects = sorted(instances['objects'], key=lambda item: item.get('iscrowd') != 1)
    annotations = ((item.get('id'), item.get('category_id'), item.get('segmentation')) for item in objects)
    return draw_masks(instances['size'], annotations, _FROM_CATEGORY)


def _read_instances(file: Member, images: Mapping[str, Member]) -> dict[str, InMemory]:
    """Returns number -> size and instances of every image, those without instances included."""
    pycocotools_mask()  # is it installed? Not after minutes of reading
    try:
        content = parse_json(file.read())
        sizes = {item['id']: (item['height'], item['width']) for item in content['images']}
        objects = defaultdict(list)
        for item in content['annotations']:
            objects[item['image_id']].append(item)
        given = {
            f'{number:012d}': InMemory({'size': size, 'objects': objects[number]}, f'Image {number} in {file}')
            for number, size in sizes.items()
        }
    except (ValueError, KeyError, TypeError) as error:
        raise TPAError(f'{file} is not an annotation file of COCO ({error!r}). Download it again.') from error
    return pairs.take(given, images, 'The annotation of {}', 'an image')
