"""The pool: unlabeled images for the bank. Nothing on this path can read a label."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from mmcv.transforms import LoadAnnotations
from mmengine.config import ConfigDict
from mmseg.registry import DATASETS, TRANSFORMS
from torch.utils.data import Dataset

from ..errors import TPAError
from ..options import AtLeastOne, Range, check_fields, options_of
from .transforms import add_read_checks

DEFAULT_SIZE = 100
IMAGE_SUFFIXES = tuple(
    form for suffix in ('.jpg', '.jpeg', '.png', '.bmp', '.webp', '.tif', '.tiff') for form in (suffix, suffix.upper())
)


@dataclass(frozen=True)
class PoolOptions:
    """Options that select the images of the pool.

    Args:
        size: Number of images, drawn without replacement. Default: 100, or all if there are fewer.
        fraction: Fraction of the images, instead of a number.
        seed: Random seed of the draw. Pools with the same seed are nested: a smaller one is part of a larger one.
        files: Names or paths of the images, as a list or as a text file with one per line.
        folder: Folder of images, including subfolders, to use instead of the test set.
        dataset: Changes to the config of the test set, e.g. for another split.
    """

    size: AtLeastOne | None = None
    fraction: Annotated[float, Range(0, 1, above=True)] | None = None
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0
    files: Sequence[str] | str | None = None
    folder: str | None = None
    dataset: dict | None = None

    def __post_init__(self) -> None:
        if sum(option is not None for option in (self.size, self.fraction, self.files)) > 1:
            raise TPAError('pool.size, pool.fraction and pool.files are mutually exclusive: set only one of them.')
        check_fields(self)

    @classmethod
    def of(cls, given: dict | None) -> PoolOptions:
        """Reads the options of a config."""
        return options_of(cls, given, 'PrototypeBankHook.pool')

    def draw(self, count: int) -> list[int]:
        """Returns the indices of the pool among ``count`` images, in ascending order."""
        if self.size is not None and self.size > count:
            raise TPAError(f'pool.size is {self.size} but the dataset has only {count} images. Reduce it or remove it.')
        size = self.size or DEFAULT_SIZE
        if self.fraction is not None:
            size = max(1, round(self.fraction * count))
        # RandomState's stream never changes, so a seed gives the same pool in every version of NumPy.
        return sorted(np.random.RandomState(self.seed).permutation(count)[:size].tolist())


class Pool(Dataset):
    """Images of a dataset, packed for the model, without their labels.

    Args:
        dataset: An MMSegmentation dataset that loads no annotations.
        indices: Indices of the images in the dataset.
        root: Folder that the names of the images are relative to.
    """

    def __init__(self, dataset: Dataset, indices: Sequence[int], root: str | None = None) -> None:
        self.dataset = dataset
        self.indices = list(indices)
        self.root = root

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, item: int) -> dict:
        data = self.dataset[self.indices[item]]
        # A dataset that generates its images may return the ground truth anyway.
        if 'gt_sem_seg' in data['data_samples']:
            del data['data_samples'].gt_sem_seg
        return data

    def subset(self, items: Sequence[int]) -> Pool:
        """Returns a pool with some of the items."""
        return Pool(self.dataset, [self.indices[item] for item in items], self.root)

    def without(self, names: Collection[str]) -> Pool:
        """The pool without the images of these names."""
        held = set(names)
        return self.subset([item for item, name in enumerate(self.names()) if name not in held])

    def name(self, item: int) -> str:
        """Returns the name of an image, the same on every machine."""
        path = self._path(item)
        return os.path.relpath(path, self.root) if self.root else path

    def _path(self, item: int) -> str:
        return str(self.dataset.get_data_info(self.indices[item])['img_path'])

    def names(self) -> list[str]:
        """Returns the names of all images."""
        return [self.name(item) for item in range(len(self))]

    def fingerprint(self) -> dict:
        """Identifies the pool by the names and sizes of its images and by the steps of its pipeline."""
        images = [f'{name} {_bytes(self._path(item))}' for item, name in enumerate(self.names())]
        pipeline = [repr(step) for step in self.dataset.pipeline.transforms]
        return {'images': len(self), 'content': _digest(images), 'pipeline': _digest(pipeline)}


def _bytes(path: str) -> int | None:
    """Returns the size of a file; None if the image does not come from a file."""
    return os.path.getsize(path) if os.path.isfile(path) else None


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256('\n'.join(lines).encode()).hexdigest()[:16]


def build_pool(dataset: dict, options: PoolOptions) -> Pool:
    """Builds the pool from the config of the test dataset."""
    config = copy.deepcopy(ConfigDict(dataset))
    if options.dataset is not None:
        config.update(copy.deepcopy(options.dataset))
    if options.folder is not None:
        config = _folder_config(config, Path(options.folder))
    _leave_labels_out(config)
    images = DATASETS.build(config)
    root = options.folder or config.get('data_root')
    pool = Pool(images, range(len(images)), root)
    return pool.subset(_listed(pool, options.files) if options.files is not None else options.draw(len(pool)))


def _leave_labels_out(config: ConfigDict) -> None:
    """Removes everything that could read a label from the config of a dataset and of the datasets it wraps."""
    if 'pipeline' in config:
        config.pipeline = [step for step in config.pipeline if not _reads_labels(step)]
        add_read_checks(config.pipeline)
    if 'data_prefix' in config:
        config.data_prefix.pop('seg_map_path', None)
    for inner in (config.get('dataset'), *(config.get('datasets') or ())):
        if isinstance(inner, dict):
            _leave_labels_out(inner)


def _reads_labels(step: dict) -> bool:
    kind = TRANSFORMS.get(step['type']) if isinstance(step['type'], str) else step['type']
    return kind is not None and (issubclass(kind, LoadAnnotations) or 'annotation' in kind.__name__.lower())


def _folder_config(config: ConfigDict, folder: Path) -> ConfigDict:
    """Returns the config of a dataset of all images in a folder, with the pipeline and classes of another one."""
    if not any(path.suffix in IMAGE_SUFFIXES for path in folder.rglob('*')):
        raise TPAError(f'pool.folder {folder} contains no images. Suffixes: {", ".join(IMAGE_SUFFIXES[::2])}.')
    metainfo = DATASETS.build({**config, 'lazy_init': True}).metainfo
    return ConfigDict(
        type='BaseSegDataset',
        data_prefix=dict(img_path=str(folder)),
        img_suffix=IMAGE_SUFFIXES,
        metainfo=dict(classes=metainfo['classes'], palette=metainfo['palette']),
        pipeline=config.pipeline,
        test_mode=True,
    )


def _listed(pool: Pool, files: Sequence[str] | str) -> list[int]:
    """Returns the indices of the listed images, given by path in the dataset, file name or stem."""
    if isinstance(files, str):
        if not Path(files).is_file():
            raise TPAError(f'pool.files not found: {files}. Pass a text file with one image per line, or a list.')
        files = [line.strip() for line in Path(files).read_text(encoding='utf-8').splitlines() if line.strip()]
    known: dict[str, int] = {}
    for index, name in enumerate(pool.names()):
        for key in (name, Path(name).name, Path(name).stem):
            known.setdefault(key, index)
    unknown = [name for name in files if name not in known]
    if unknown:
        raise TPAError(f'pool.files contains {len(unknown)} names that are not in the dataset, e.g. {unknown[0]!r}.')
    return sorted({known[name] for name in files})
