"""PrototypeBankHook: gives the TPASegmentor its bank before a test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.runner import Runner
from mmseg.registry import HOOKS

from ..datasets import PoolOptions, build_pool
from ..evaluation import describe_bank
from ..segmentors import TPASegmentor
from .bank_builder import BankSpec, build_bank, diagnose, find_bank, save_on_main
from .distributed import unwrap

BANK_FILE = 'bank.safetensors'


@HOOKS.register_module()
class PrototypeBankHook(Hook):
    """Before a test: takes the bank of the config, or a valid one in the work directory, or builds and saves one.

    Args:
        pool: Options of :class:`PoolOptions`; by default 100 images of the test set.
        reuse: Whether a bank in the work directory that fits host, encoder, classes, pool and anchors is used again.
        diagnose: Whether to find out if the host's labels follow the image (docs/method.md), by a second look at the
            pool. Images in the model's evidence cache do not go through the networks again.
    """

    priority = 'VERY_HIGH'

    def __init__(
        self, pool: Annotated[dict, PoolOptions] | None = None, reuse: bool = True, diagnose: bool = True
    ) -> None:
        self.pool = PoolOptions.of(pool)
        self.reuse, self.diagnose = reuse, diagnose

    def before_test(self, runner: Runner) -> None:
        model = unwrap(runner.model)
        if not isinstance(model, TPASegmentor):
            return
        model.set_classes(runner.test_dataloader.dataset.metainfo)
        if model.bank_scope == 'image':
            return
        if model.bank is None and model.bank_file is not None:
            model.load_bank()
        if model.bank is None:
            self._find_or_build(runner, model)
        # The test starts alike, whether the bank was built just now or found.
        model.host.reset()
        print_log(describe_bank(model.bank, model.dataset_meta['classes']), 'current')

    def _find_or_build(self, runner: Runner, model: TPASegmentor) -> None:
        pool = build_pool(runner.cfg.test_dataloader.dataset, self.pool)
        path = Path(runner.work_dir) / BANK_FILE
        found = find_bank(path, model, pool, BankSpec(model.anchor_rule)) if self.reuse else None
        loader, independent = runner.cfg.test_dataloader, model.host.images_are_independent
        how = loader.get('num_workers', 0), loader.get('batch_size') or 1
        bank = build_bank(model, pool, *how) if found is None else found
        known = bank.diagnosed_for(model.fusion)
        # Hosts that adapt to a batch would have to do so again.
        wanted = model.fusion.consistent or (self.diagnose and independent)
        if not known and wanted:
            bank.diagnosis = diagnose(model, pool, {'bank': (bank, model.fusion)}, *how)['bank']
        if found is None or (wanted and not known):
            save_on_main(bank, path)
        model.set_bank(bank, path)
