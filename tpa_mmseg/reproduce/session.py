"""What every run needs: its config, its images, its models, and a place to say how far it is."""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.device import get_device
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS
from torch.utils.data import DataLoader, Dataset, Subset
from tpa_tools.benchmarking.measure import machine

from ..datasets import Pool, PoolOptions, build_pool
from ..engine.bank_hook import pool_options
from ..engine.config import load_config
from ..errors import TPAError
from .experiments import suite_of
from .layout import Progress, RunFolder
from .results import RunResult
from .runs import Run
from .shared_pass import SharedPass

# Seconds between two notes of how far a run is: a file on a shared disk.
_NOTE_EVERY = 2.0


class Session:
    """A run that is being executed.

    Args:
        run: The run.
        folder: Its folder.
        claim: Number of the claim that it is executed under.
        cfg_options: Settings that replace those of the config.
    """

    def __init__(self, run: Run, folder: RunFolder, claim: int, cfg_options: dict | None = None) -> None:
        self.run, self.folder, self.claim = run, folder, claim
        self.cfg_options = cfg_options or {}
        self.suite = suite_of(run.suite)
        self.source = self.suite.config(run)
        self.cfg = self._load()
        self.device = get_device()
        self._started = time.monotonic()
        self._pass_started: float | None = None
        self._noted = 0.0

    def _load(self) -> Config:
        cfg = load_config(
            argparse.Namespace(
                config=self.source, work_dir=str(self.folder.path), cfg_options=self.cfg_options, launcher='none'
            )
        )
        if cfg.model.type != 'TPASegmentor':
            raise TPAError(f'The model of {self.source} is {cfg.model.type}, but experiments need a TPASegmentor.')
        self.folder.path.mkdir(parents=True, exist_ok=True)
        cfg.dump(self.folder.config)
        init_default_scope(cfg.get('default_scope', 'mmseg'))
        return cfg

    @cached_property
    def shared(self) -> SharedPass:
        """The models, without banks."""
        shared = SharedPass(self.cfg.model, self.run.settings, self.suite.encoders, self.device)
        shared.set_classes(self.dataset.metainfo)
        return shared

    @cached_property
    def dataset(self) -> Dataset:
        """The test set."""
        return DATASETS.build(self.cfg.test_dataloader.dataset)

    @cached_property
    def pool_options(self) -> PoolOptions:
        """The config's own pool."""
        hooks = [hook for hook in self.cfg.get('custom_hooks', []) if hook['type'] == 'PrototypeBankHook']
        return pool_options(hooks[0].get('pool') if hooks else None)

    def images(self, dataset: Dataset, indices: Sequence[int] | None = None) -> Iterator[dict]:
        """Batches of a dataset, or of some of its images, in order."""
        options = self.cfg.test_dataloader
        part = dataset if indices is None else Subset(dataset, list(indices))
        yield from DataLoader(
            part,
            batch_size=options.get('batch_size', 1),
            num_workers=options.get('num_workers', 0),
            collate_fn=pseudo_collate,
        )

    def named(self, pool: Pool) -> Iterator[tuple[str, dict]]:
        """Name and data of every image of a pool."""
        loader = DataLoader(
            pool, batch_size=1, num_workers=self.cfg.test_dataloader.get('num_workers', 0), collate_fn=pseudo_collate
        )
        yield from zip(pool.names(), loader, strict=True)

    def pool(self, options: PoolOptions | None = None) -> Pool:
        """Images without labels, by default those of the config."""
        return build_pool(self.cfg.test_dataloader.dataset, options or self.pool_options)

    def say(self, images: int, total: int) -> None:
        """Notes how far the pass over the test images is."""
        now = time.monotonic()
        if self._pass_started is None:
            self._pass_started = now
        if now - self._noted < _NOTE_EVERY and images < total:
            return
        self._noted = now
        self.folder.note(Progress(self.claim, images, total, now - self._pass_started))

    def result(self, images: int, **sections) -> RunResult:
        """The run's result. Args: images that were scored; sections of :class:`RunResult`."""
        now = time.monotonic()
        begun = now if self._pass_started is None else self._pass_started
        return RunResult(
            experiment=self.run.experiment,
            suite=self.run.suite,
            run=self.run.name,
            config='/'.join(Path(self.source).parts[-2:]),
            images=images,
            seconds=round(now - begun, 3),
            startup_seconds=round(begun - self._started, 3),
            device=device_name(self.device),
            cfg_options=self.cfg_options,
            **sections,
        )


def device_name(device: str) -> str:
    """The name of a GPU, or of the CPU."""
    if device.startswith('cuda'):
        return torch.cuda.get_device_name()
    return machine()['cpu'] if device == 'cpu' else f'{platform.machine()} {device}'
