"""RunContext: the config, images and models of a run, and a place to note its progress."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import torch
from mmengine.config import Config, ConfigDict
from mmengine.dataset import pseudo_collate
from mmengine.device import get_device
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS, MODELS
from torch.nn import Module
from torch.utils.data import DataLoader, Dataset, Subset

from ..core import ENCODER, Adapter, AnchorRule, Fusion, PrototypeBank
from ..datasets import Pool, PoolOptions, build_pool
from ..engine.bank_builder import BankSpec, build_banks
from ..engine.config import load_config
from ..errors import TPAError
from ..segmentors import TPASegmentor
from .experiments import suite_of
from .folders import Progress, RunFolder
from .provenance import device_name
from .results import RunResult
from .runs import Run, Setting

# Seconds between two notes of how far a run is: a file on a shared disk.
_NOTE_EVERY = 2.0


class RunContext:
    """A run that is being executed.

    Args:
        run: The run.
        folder: Its folder.
        cfg_options: Settings that replace those of the config.
    """

    def __init__(self, run: Run, folder: RunFolder, cfg_options: dict | None = None) -> None:
        self.run, self.folder = run, folder
        self.cfg_options = cfg_options or {}
        self.suite = suite_of(run.suite)
        self.source = self.suite.config(run)
        self.cfg = self._load()
        self.device = get_device()
        self._started = time.monotonic()
        self._pass_started: float | None = None
        self._noted = 0.0

    def _load(self) -> Config:
        cfg = load_config(self.source, self.folder.path, self.cfg_options)
        if cfg.model.type != 'TPASegmentor':
            raise TPAError(f'The model of {self.source} is {cfg.model.type}, but experiments need a TPASegmentor.')
        self.folder.path.mkdir(parents=True, exist_ok=True)
        cfg.dump(self.folder.config)
        init_default_scope(cfg.get('default_scope', 'mmseg'))
        return cfg

    @cached_property
    def model(self) -> TPASegmentor:
        """Host and encoders, without a bank. TPA reads nothing of a host but its scores, so one host serves all."""
        config = self.cfg.model
        model = _build({**config, 'encoder': _build(config.encoder)})
        for variant in self.run.settings:
            name = self.encoder_of(variant)
            if name not in model.encoders:
                model.encoders[name] = _build(self._encoder_config(variant))
        model.set_classes(self.dataset.metainfo)
        return model.to(self.device)

    def encoder_of(self, variant: Setting) -> str:
        """Name of a variant's encoder among those of the model."""
        return ENCODER if self._encoder_config(variant) == self.cfg.model.encoder else variant.encoder

    def _encoder_config(self, variant: Setting) -> ConfigDict:
        if variant.encoder is None:
            return self.cfg.model.encoder
        if variant.encoder == 'clip':
            return ConfigDict(type='CLIPEncoder', clip=self.cfg.model.host.clip)
        if variant.encoder not in self.suite.encoders:
            known = ', '.join(('clip', *self.suite.encoders))
            raise TPAError(f'Unknown encoder {variant.encoder!r}. Choose from: {known}.')
        return ConfigDict(self.suite.encoders[variant.encoder])

    def build_banks(self, pool: Pool, members: Mapping[str, frozenset[str] | None]) -> dict[str, PrototypeBank]:
        """A bank for every variant that has one, from one pass over the pool.

        Args:
            pool: Images without labels: all that any bank wants.
            members: Key of a variant -> names of its images; None for all of them.
        """
        specs = {
            variant.key: BankSpec(self._anchors(variant), self.encoder_of(variant), members[variant.key])
            for variant in self.run.settings
            if variant.bank_scope == 'pool'
        }
        loader = self.cfg.test_dataloader
        banks = build_banks(self.model, pool, specs, loader.get('num_workers', 0), loader.get('batch_size', 1))
        self.model.host.reset()
        return banks

    def adapters(self, banks: Mapping[str, PrototypeBank]) -> dict[str, Adapter]:
        """Key of every variant -> its setting of TPA. Args: banks: from :meth:`build_banks`."""
        return {
            variant.key: Adapter(
                banks[variant.key].prototypes() if variant.bank_scope == 'pool' else None,
                Fusion(**{**self.cfg.model.get('fusion', {}), **variant.fusion}),
                self._anchors(variant),
                self.encoder_of(variant),
            )
            for variant in self.run.settings
        }

    def _anchors(self, variant: Setting) -> AnchorRule:
        return AnchorRule(**{**self.cfg.model.get('anchors', {}), **variant.anchors})

    @cached_property
    def dataset(self) -> Dataset:
        """The test set."""
        return DATASETS.build(self.cfg.test_dataloader.dataset)

    @cached_property
    def pool_options(self) -> PoolOptions:
        """The config's own pool."""
        hooks = [hook for hook in self.cfg.get('custom_hooks', []) if hook['type'] == 'PrototypeBankHook']
        return PoolOptions.of(hooks[0].get('pool') if hooks else None)

    def images(self, dataset: Dataset, indices: Sequence[int] | None = None) -> Iterator[dict]:
        """Batches of a dataset, or of some of its images, in order."""
        options = self.cfg.test_dataloader
        part = dataset if indices is None else Subset(dataset, list(indices))
        yield from DataLoader(
            part,
            batch_size=options.get('batch_size', 1),
            num_workers=options.get('num_workers', 0),
            collate_fn=pseudo_collate,
            pin_memory=options.get('pin_memory', False),
        )

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
        self.folder.note(Progress(images, total))

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


def _build(config: dict) -> Module:
    """A model or an encoder. One without weights draws the same ones whatever was built before it."""
    torch.manual_seed(0)
    return MODELS.build(config)
