"""Whether the images that a dataset asks for are there, before anything is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS

from ..datasets.pool import IMAGE_SUFFIXES
from ..options import options_of_class


def data_problem(dataset: Mapping) -> str | None:
    """Returns what is missing of a dataset, and what to do; None if nothing is. Args: dataset: Its config."""
    if (place := missing_data(dataset)) is not None:
        return f'Data not found: {place}. Check the path, or prepare the data as data/README.md says.'
    return suffix_problem(dataset)


def missing_data(dataset: Mapping) -> Path | None:
    """Returns the folder, the list of images or the images of a dataset that are not there; None if all are."""
    root = Path(dataset.get('data_root') or '')
    parts = (dataset.get('ann_file'), (dataset.get('data_prefix') or {}).get('img_path'))
    places = (root, *(root / part for part in parts if part))
    return next((place for place in places if not place.exists()), None)


def suffix_problem(dataset: Mapping) -> str | None:
    """Returns a sentence if no image has the suffix that a dataset looks for; None if one has."""
    kind = DATASETS.get(dataset['type']) if isinstance(dataset['type'], str) else dataset['type']
    part = (dataset.get('data_prefix') or {}).get('img_path')
    if getattr(kind, 'load_data_list', None) is not BaseSegDataset.load_data_list or not part:
        return None
    suffix = dataset.get('img_suffix') or options_of_class(kind).known['img_suffix'].default
    suffixes = (suffix,) if isinstance(suffix, str) else tuple(suffix)
    root = Path(dataset.get('data_root') or '')
    folder, listed = root / part, dataset.get('ann_file')
    if listed:
        names = [line.strip() for line in (root / listed).read_text(encoding='utf-8').splitlines() if line.strip()]
        if not names:
            return f'{root / listed} lists no images.'
        if any((folder / f'{name}{each}').exists() for name in names for each in suffixes):
            return None
    elif any(path.name.endswith(suffixes) for path in folder.rglob('*')):
        return None
    others = Counter(_image_suffixes(folder)).most_common(1)
    hint = 'prepare the data as data/README.md says.'
    for found, count in others:
        hint = f'{count} images end in {found!r}, so set test_dataloader.dataset.img_suffix={found!r}.'
    return f'No image in {folder} ends in {" or ".join(map(repr, suffixes))}: {hint}'


def _image_suffixes(folder: Path) -> Iterator[str]:
    return (path.suffix for path in folder.rglob('*') if path.suffix in IMAGE_SUFFIXES)
