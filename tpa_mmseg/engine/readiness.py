"""What a test needs besides its config: weights, data, bank, device and disk. Builds no network."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from mmseg.registry import DATASETS

from ..console import print_table
from ..core import PrototypeBank
from ..datasets import PoolOptions
from ..errors import TPAError
from ..weights.needs import needs
from .bank_hook import BANK_FILE
from .data_check import data_problem
from .report_hook import RESULTS

# Below this a log and a bank may not fit.
_LEAST_BYTES = 200_000_000


@dataclass(frozen=True)
class Finding:
    """One line of the report. Args: part; state: what is there; missing: Whether a test would fail."""

    part: str
    state: str
    missing: bool = False


def report_readiness(cfg: Config) -> None:
    """Prints what a test of a config needs, and raises TPAError if something is missing.

    Args:
        cfg: From :func:`~tpa_mmseg.engine.config.checked_config`.
    """
    found = [Finding('Config', f'{cfg.filename}: every key and value fits'), *findings(cfg)]
    print_table(['', 'State', 'OK'], [[each.part, each.state, 'missing' if each.missing else 'yes'] for each in found])
    missing = list(dict.fromkeys(each.part.lower() for each in found if each.missing))
    if missing:
        raise TPAError(f'{cfg.filename} cannot be tested yet. Missing: {", ".join(missing)} (see the table).')


def findings(cfg: Config) -> Iterator[Finding]:
    """Yields everything that a test needs, in the order in which it is needed."""
    images = None
    if (problem := data_problem(cfg.test_dataloader.dataset)) is not None:
        yield Finding('Data', problem, missing=True)
    else:
        images = _count(cfg.test_dataloader.dataset)
        yield Finding('Data', f'{images:,} images')
    yield from _weights(cfg)
    yield from _bank(cfg, images)
    yield _device()
    yield _disk(Path(cfg.work_dir))
    yield _last_time(Path(cfg.work_dir), images)


def _count(dataset: Mapping) -> int:
    """Number of images of a dataset. It is built, but none of its images is read."""
    with DefaultScope.overwrite_default_scope('mmseg'):
        return len(DATASETS.build(dict(dataset)))


def _weights(cfg: Config) -> Iterator[Finding]:
    try:
        for need in needs(cfg.model):
            path = need.source.locate()
            state = f'{need.source.title}: {path}' if path else f'{need.source.title} ({need.place})'
            if path is None:
                own = 'copy it there, or correct the config'
                remedy = own if need.source.own is not None else f'tpa weights download {cfg.filename}'
                state += f' is not on this machine: {remedy}'
            yield Finding('Weights', state, missing=path is None)
    except TPAError as error:
        yield Finding('Weights', str(error), missing=True)


def _bank(cfg: Config, images: int | None) -> Iterator[Finding]:
    if cfg.model.type != 'TPASegmentor' or cfg.model.get('bank_scope') == 'image':
        return
    given = cfg.model.get('bank')
    path = Path(given or Path(cfg.work_dir) / BANK_FILE)
    if given or path.exists():
        try:
            bank = PrototypeBank.load(path)
            reused = 'is used' if given else 'is used again if it fits model and pool'
            yield Finding('Bank', f'{path} {reused}: {bank.images} images')
            return
        except TPAError as error:
            if given:
                yield Finding('Bank', str(error), missing=True)
                return
    hooks = [hook for hook in cfg.get('custom_hooks', []) if hook['type'] == 'PrototypeBankHook']
    options = PoolOptions.of(hooks[0].get('pool') if hooks else None)
    yield from _pool(options, images)


def _pool(options: PoolOptions, images: int | None) -> Iterator[Finding]:
    if images is None or options.folder or options.files or options.dataset:
        yield Finding('Bank', 'will be built')
        return
    try:
        yield Finding('Bank', f'will be built from {len(options.draw(images))} images')
    except TPAError as error:
        yield Finding('Bank', str(error), missing=True)


def _device() -> Finding:
    if not torch.cuda.is_available():
        return Finding('GPU', 'none: the CPU is used')
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return Finding('GPU', ', '.join(dict.fromkeys(names)) + (f' x {len(names)}' if len(names) > 1 else ''))


def _disk(folder: Path) -> Finding:
    place = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    free = shutil.disk_usage(place).free
    return Finding('Disk', f'{free / 1e9:,.1f} GB free for {folder}', missing=free < _LEAST_BYTES)


def _last_time(folder: Path, images: int | None) -> Finding:
    try:
        each = json.loads((folder / RESULTS).read_text(encoding='utf-8'))['seconds_per_image']
    except (OSError, ValueError, KeyError, TypeError):
        return Finding('Time', f'not known: there is no earlier test in {folder}')
    total = f', {each * images:,.0f} s for all' if images is not None else ''
    return Finding('Time', f'{each:.2f} s per image last time{total}')
