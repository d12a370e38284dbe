"""Fills the parts of docs/miniature.md that are numbers: nobody types them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path

from tpa_mmseg.console import render, signed
from tpa_mmseg.errors import TPAError
from tpa_mmseg.io import atomic_write, write_png
from tpa_mmseg.miniature.files import scene

from ..scene_images import scene_grid
from . import guard, targets
from .cards import WEIGHTS, read_card
from .measure import HOSTS

# The weights in the order of the page, and what they are.
_NETWORKS = {
    'clip': 'CLIP, patches of 8',
    'clip_p7': 'CLIP, patches of 7',
    'encoder': 'encoder',
    'sam': 'SAM',
    'fcn': 'FCN',
}
# What the log's last line holds beside results.
_NOT_RESULTS = ('step', 'seconds', 'loss')
# How many scenes a picture shows, and of which size.
_SHOWN, _SHOWN_SIZE = 6, (128, 160)


def fill(path: Path, results: Path | None = None, found: Sequence[Path] = ()) -> None:
    """Writes cards and numbers between their marks, ``<!-- cards -->`` to ``<!-- end of cards -->`` and so on.

    Args:
        path: The page.
        results: ``results.json`` of a demo on the whole test split; what the page says of it stays without.
        found: What ``tools/miniature.py targets`` has written, a file for each split.
    """
    text = replace(path.read_text(encoding='utf-8'), 'cards', cards())
    text = replace(text, 'slice', slice_table())
    if results is not None:
        text = replace(text, 'test', test_table(json.loads(results.read_text(encoding='utf-8'))))
    for file in found:
        content = json.loads(file.read_text(encoding='utf-8'))
        text = replace(text, f'targets of {content["split"]}', targets.table(content['hosts'], markdown=True))
    with atomic_write(path, 'w') as file:
        file.write(text)


def draw(folder: Path) -> None:
    """Writes the page's pictures: usual scenes of the train split, and those of val with their unusual colors."""
    for split in ('train', 'val'):
        scenes = (scene(split, index) for index in count())
        shown = islice((one for one in scenes if one.labels.shape == _SHOWN_SIZE), _SHOWN)
        write_png(folder / f'miniature_{split}.png', scene_grid(list(shown)))


def replace(text: str, name: str, content: str) -> str:
    """The page with another content between two marks."""
    begin, end = f'<!-- {name} -->', f'<!-- end of {name} -->'
    pattern = re.compile(f'{re.escape(begin)}.*?{re.escape(end)}', re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise TPAError(f'The page needs the marks {begin} and {end}, once each.')
    return pattern.sub(lambda _: f'{begin}\n\n{content}\n\n{end}', text)


def cards() -> str:
    """What each of the committed networks was trained on, how long, and what it reached, as a table."""
    rows = []
    for name, title in _NETWORKS.items():
        card = read_card(WEIGHTS / f'{name}.safetensors')
        reached = [f'{key} {value:g}' for key, value in card['last'].items() if key not in _NOT_RESULTS]
        rows.append(
            [
                f'{title} (`{name}`)',
                card['parameters'],
                f'{card["bytes"] / 1e6:.1f} MB',
                card['trained_on'],
                card['settings']['steps'],
                round(card['seconds'] / 60),
                ', '.join(reached),
            ]
        )
    columns = ['Network', 'Numbers', 'File', 'Trained on', 'Steps', 'Minutes', 'Last line of the log']
    return render(columns, rows, align='lrrlrrl', markdown=True)


def slice_table() -> str:
    """The committed numbers of every host on the slice, as a table."""
    rows = [
        [HOSTS[host], numbers['base'], numbers['tpa'], signed(numbers['tpa'] - numbers['base'])]
        for host, numbers in guard.recorded().items()
    ]
    table = render(['Host', 'Base mIoU', 'TPA mIoU', 'Gain'], rows, align='lrrr', markdown=True)
    return f'{guard.SLICE.size} scenes of {guard.SLICE.split}, a pool of {guard.SLICE.pool}.\n\n{table}'


def test_table(results: list[dict]) -> str:
    """The results of a demo as a table. Args: results: content of its results.json."""
    rows = [
        [
            result['host'],
            result['base']['mIoU'],
            result['tpa']['mIoU'],
            signed(result['gain']['mIoU']),
            f'{result["classes_covered"]} of {result["num_classes"]}',
        ]
        for result in results
    ]
    columns = ['Host', 'Base mIoU', 'TPA mIoU', 'Gain', 'Classes covered']
    return render(columns, rows, align='lrrrr', markdown=True)
