"""What the paper prints: its tables as data, mIoU in percent. Nothing here was measured with this code."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

#: Benchmarks by their names in configs and tables, in the order of the paper, with the names for people.
BENCHMARKS = {
    'voc21': 'VOC21',
    'context60': 'Context60',
    'coco_object': 'COCO-Object',
    'voc20': 'VOC20',
    'context59': 'Context59',
    'coco_stuff164k': 'COCO-Stuff164k',
    'cityscapes': 'Cityscapes',
    'ade20k': 'ADE20K',
}
BACKBONES = {'vit-b16': 'ViT-B/16', 'vit-l14': 'ViT-L/14', 'vit-h14': 'ViT-H/14'}

_MAIN = ('main_b16', 'main_l14_h14')
_PROXIES = ('vfm_b16', 'vfm_l14_h14')
_PROTOCOLS = ('composition',)


@cache
def tables() -> dict:
    """The content of ``tables.json``; not to be changed."""
    return json.loads((Path(__file__).parent / 'paper.json').read_text(encoding='utf-8'))


def scores(
    host: str, backbone: str, method: str, proxy: str | None = None, protocol: str | None = None
) -> dict[str, float | None]:
    """A row of the paper.

    Args:
        host: Host, such as ``'naclip'``.
        backbone: Key of :data:`BACKBONES`.
        method: ``'base'`` for the host alone, ``'tpa'``, or another method of the tables.
        proxy: For ProxyCLIP with another encoder inside: ``'sam'``, ``'mae'`` or ``'dinov2'``.
        protocol: ``'mlmp_224'`` for the rows that were tested so.

    Returns:
        mIoU by benchmark, None where the paper has a dash.

    Raises:
        KeyError: The paper has no such row.
    """
    names = _PROTOCOLS if protocol else _PROXIES if proxy else _MAIN
    wanted = {'host': host, 'backbone': backbone, 'method': method, 'vfm': proxy, 'protocol': protocol}
    for name in names:
        for row in tables()['tables'][name]:
            if all(row.get(key) == value for key, value in wanted.items()):
                return row['scores']
    raise KeyError(f'The paper has no row {wanted}.')
