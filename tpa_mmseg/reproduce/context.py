"""RunContext: the config, images and models of a run, and a place to note its progress."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import mmengine.dist as dist
import torch
from mmengine.config import Config, ConfigDict
from mmengine.dataset import pseudo_collate
from mmengine.device import get_device
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS, MODELS
from torch.nn import Module
from torch.utils.data import DataLoader, Dataset, Subset

from ..core import ENCODER, Adapter, AnchorRule, Fusion, PrototypeBank
from ..core.bank_file import as_json
from ..datasets import Pool, PoolOptions, build_pool
from ..engine.bank_builder import BankSpec, build_banks, diagnose, find_bank, save_on_main
from ..engine.config import load_config
from ..engine.provenance import provenance
from ..segmentors import TPASegmentor
from .experiments import suite_of
from .folders import RunFolder
from .results import RunResult
from .runs import Run, Setting

# Of encoders that an experiment leaves untrained.
_SEED = 0


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
        self.num_workers: int = self.cfg.test_dataloader.get('num_workers', 0)
        self.batch_size: int = self.cfg.test_dataloader.get('batch_size') or 1
        self.device = get_device()
        self._started = time.monotonic()
        self._pass_started: float | None = None
        self._banks: dict[str, PrototypeBank] = {}

    def _load(self) -> Config:
        cfg = load_config(self.source, self.folder.path, self.cfg_options)
        if dist.is_main_process():
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
        return model.to(self.device).eval()

    def encoder_of(self, variant: Setting) -> str:
        """Name of a variant's encoder among those of the model."""
        return ENCODER if self._encoder_config(variant) == self.cfg.model.encoder else variant.encoder

    def _encoder_config(self, variant: Setting) -> ConfigDict:
        if variant.encoder is None:
            return self.cfg.model.encoder
        if variant.encoder == 'clip':
            return ConfigDict(type='CLIPEncoder', clip=self.cfg.model.host.clip)
        return ConfigDict(self.suite.encoders[variant.encoder])

    def build_banks(self, pool: Pool, parts: Mapping[str, Sequence[int]] | None = None) -> dict[str, PrototypeBank]:
        """A bank for every variant that has one, of an earlier attempt or from one pass over the images of all.

        Args:
            pool: Images without labels.
            parts: Key of a variant -> indices of its images in the pool's dataset. Default: all of the pool's for all.
        """
        members: dict[str, frozenset[str]] = {}
        if parts is not None:
            pool = Pool(pool.dataset, sorted(set().union(*parts.values())), pool.root)
            names = dict(zip(pool.indices, pool.names(), strict=True))
            members = {key: frozenset(names[index] for index in part) for key, part in parts.items()}
        specs = {
            variant.key: BankSpec(self._anchors(variant), self.encoder_of(variant), members.get(variant.key))
            for variant in self.run.settings
            if variant.bank_scope == 'pool'
        }
        paths = {key: self.folder.banks / f'{key}.safetensors' for key in specs}
        # An earlier attempt, killed later on, may have left them.
        banks = {key: find_bank(paths[key], self.model, pool, spec) for key, spec in specs.items()}
        if None in banks.values():
            banks = build_banks(self.model, pool, specs, self.num_workers, self.batch_size)
            for key, bank in banks.items():
                save_on_main(bank, paths[key])
        self._banks = self._diagnosed(banks, pool)
        self.model.host.reset()
        return self._banks

    def _diagnosed(self, banks: Mapping[str, PrototypeBank], pool: Pool) -> dict[str, PrototypeBank]:
        """The banks, with a diagnosis of their own for the variants of consistent TPA."""
        fusions = {variant.key: self._fusion(variant) for variant in self.run.settings}
        wanted = {key: (bank, fusions[key]) for key, bank in banks.items() if fusions[key].consistent}
        found = diagnose(self.model, pool, wanted, self.num_workers, self.batch_size) if wanted else {}
        # Variants share a bank, which has one diagnosis.
        banks = {key: copy.copy(bank) for key, bank in banks.items()}
        for key, diagnosis in found.items():
            banks[key].diagnosis = diagnosis
        return banks

    def adapters(self, banks: Mapping[str, PrototypeBank]) -> dict[str, Adapter]:
        """Key of every variant -> its setting of TPA. Args: banks: from :meth:`build_banks`."""
        found = {}
        for variant in self.run.settings:
            bank, fusion = banks[variant.key] if variant.bank_scope == 'pool' else None, self._fusion(variant)
            prototypes = None if bank is None else bank.prototypes().to(self.device)
            second = None if bank is None else bank.second_term(fusion)
            found[variant.key] = Adapter(prototypes, fusion, self._anchors(variant), self.encoder_of(variant), second)
        return found

    def _fusion(self, variant: Setting) -> Fusion:
        return Fusion(**{**self.cfg.model.get('fusion', {}), **variant.fusion})

    def _anchors(self, variant: Setting) -> AnchorRule:
        return AnchorRule(**{**self.cfg.model.get('anchors', {}), **variant.anchors})

    @cached_property
    def dataset(self) -> Dataset:
        """The test set."""
        return DATASETS.build(self.cfg.test_dataloader.dataset)

    @property
    def ignore_index(self) -> int:
        """The label of pixels that do not count."""
        return self.cfg.test_evaluator.get('ignore_index', 255)

    @cached_property
    def pool_options(self) -> PoolOptions:
        """The config's own pool."""
        hooks = [hook for hook in self.cfg.get('custom_hooks', []) if hook['type'] == 'PrototypeBankHook']
        return PoolOptions.of(hooks[0].get('pool') if hooks else None)

    def images(self, dataset: Dataset, indices: Sequence[int] | None = None) -> Iterator[dict]:
        """Batches of a dataset, or of some of its images, in order."""
        part = dataset if indices is None else Subset(dataset, list(indices))
        pin = self.cfg.test_dataloader.get('pin_memory', False)
        yield from DataLoader(
            part, self.batch_size, num_workers=self.num_workers, collate_fn=pseudo_collate, pin_memory=pin
        )

    def pool(self, options: PoolOptions | None = None) -> Pool:
        """Images without labels, by default those of the config."""
        return build_pool(self.cfg.test_dataloader.dataset, options or self.pool_options)

    def share(self, items: Sequence) -> Sequence:
        """Returns this rank's part of what all ranks do together."""
        rank, world = dist.get_dist_info()
        return items[rank::world]

    def gather(self, parts: list) -> list:
        """Returns what all ranks have made of their shares, in the order of the whole. Args: parts: one per item."""
        ranks = dist.all_gather_object(parts)
        return [part for row in itertools.zip_longest(*ranks) for part in row if part is not None]

    def say(self, images: int, total: int) -> None:
        """Notes how far the pass over the test images is, which all ranks do at about the same speed."""
        if self._pass_started is None:
            self._pass_started = time.monotonic()
        if dist.is_main_process():
            self.folder.say(min(total, images * dist.get_world_size()), total)

    def result(self, images: int, **sections) -> RunResult:
        """The run's result. Args: images that were scored; sections of :class:`RunResult`."""
        now = time.monotonic()
        begun = now if self._pass_started is None else self._pass_started
        seeds = {'pool': self.pool_options.seed, 'weights': _SEED}
        # What is about labels alone has built no model.
        model = self.__dict__.get('model', torch.nn.Identity())
        origin = provenance(model, self.cfg, self.dataset, self._banks, seeds, now - self._started)
        return RunResult(
            experiment=self.run.experiment,
            suite=self.run.suite,
            run=self.run.name,
            config='/'.join(Path(self.source).parts[-2:]),
            images=images,
            seconds=round(now - begun, 3),
            startup_seconds=round(begun - self._started, 3),
            provenance=origin,
            cfg_options=as_json(self.cfg_options),
            **sections,
        )


def _build(config: dict) -> Module:
    """A model or an encoder. One without weights draws the same ones whatever was built before it."""
    torch.manual_seed(_SEED)
    return MODELS.build(config)
