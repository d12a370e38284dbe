"""PrototypeBankHook: gives the TPASegmentor its bank before a test."""

from __future__ import annotations

from pathlib import Path

import mmengine.dist as dist
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.runner import Runner
from mmseg.registry import HOOKS

from ..core import PrototypeBank
from ..core.bank_file import as_json
from ..datasets import Pool, PoolOptions, build_pool
from ..errors import TPAError
from ..evaluation import describe_bank
from ..segmentors import TPASegmentor
from .bank_builder import build_bank, save_on_main
from .distributed import unwrap

BANK_FILE = 'bank.safetensors'


@HOOKS.register_module()
class PrototypeBankHook(Hook):
    """Before a test: takes the bank of the config, or a valid one in the work directory, or builds and saves one.

    Args:
        pool: Options of :class:`PoolOptions`; by default 100 images of the test set.
        reuse: Whether a bank in the work directory that fits host, encoder, classes, pool and anchors is used again.
    """

    priority = 'VERY_HIGH'

    def __init__(self, pool: dict | None = None, reuse: bool = True) -> None:
        self.pool = PoolOptions.of(pool)
        self.reuse = reuse

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
        print_log(describe_bank(model.bank.coverage(), model.dataset_meta['classes']), 'current')

    def _find_or_build(self, runner: Runner, model: TPASegmentor) -> None:
        pool = build_pool(runner.cfg.test_dataloader.dataset, self.pool)
        path = Path(runner.work_dir) / BANK_FILE
        # Rank 0 decides for all: the others may not see the file, or see it a moment later.
        found = [self._find(path, model, pool) if self.reuse and dist.is_main_process() else None]
        dist.broadcast_object_list(found)
        bank = found[0]
        if bank is None:
            loader = runner.cfg.test_dataloader
            bank = build_bank(model, pool, loader.get('num_workers', 0), loader.get('batch_size', 1))
            save_on_main(bank, path)
        model.set_bank(bank, path)

    @staticmethod
    def _find(path: Path, model: TPASegmentor, pool: Pool) -> PrototypeBank | None:
        """The bank in the work directory, if it is the one that would be built."""
        if not path.exists():
            return None
        try:
            bank = PrototypeBank.load(path)
        except TPAError as error:
            print_log(f'Building a new bank: {error}', 'current')
            return None
        expected = {**model.fingerprint(), 'pool': pool.fingerprint(), 'anchors': model.anchor_rule.as_dict()}
        actual = {**bank.fingerprint, 'anchors': bank.rule.as_dict()}
        changed = [part for part, value in expected.items() if actual.get(part) != as_json(value)]
        if changed:
            print_log(f'Building a new bank: {path} was made with another {", ".join(changed)}.', 'current')
            return None
        print_log(f'Using the bank {path} of an earlier run.', 'current')
        return bank
