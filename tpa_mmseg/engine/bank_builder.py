"""Builds a bank over all ranks: each image of the pool exactly once, one all-reduce, the same bank for any number."""

from __future__ import annotations

import mmengine.dist as dist
from mmengine.dataset import pseudo_collate
from torch.utils.data import DataLoader

from ..console import track
from ..core import PrototypeBank
from ..datasets import Pool
from ..errors import TPAError, user_message
from ..segmentors import TPASegmentor


def build_bank(model: TPASegmentor, pool: Pool, workers: int = 0) -> PrototypeBank:
    """Folds the pool into a new bank, every rank its share. Returns the whole bank on every rank.

    Args:
        model: Host and encoder, on their device.
        pool: Images without labels.
        workers: Processes that load images.
    """
    rank, world = dist.get_dist_info()
    # Not a DistributedSampler: it pads the last ranks with repeats, which would be counted twice.
    share = pool.subset(range(rank, len(pool), world))
    bank = model.new_bank()
    error = None
    try:
        _fold_in(model, share, bank, workers)
    except Exception as caught:
        error = caught
    _raise_together(error)
    _all_reduce(bank)
    bank.fingerprint = {**model.fingerprint(), 'pool': pool.fingerprint()}
    bank.pool = pool.names()
    return bank


def _fold_in(model: TPASegmentor, share: Pool, bank: PrototypeBank, workers: int) -> None:
    # before_test fires before the Runner puts the model into evaluation mode.
    model.eval()
    model.host.reset()
    loader = DataLoader(share, batch_size=1, num_workers=workers, collate_fn=pseudo_collate)
    for data in track(loader, 'Building the bank', show=dist.is_main_process()):
        model.adapt(data, bank)


def _raise_together(error: Exception | None) -> None:
    """Raises on every rank if any rank failed, so that none waits for the others for ever."""
    failed = [text for text in dist.all_gather_object(None if error is None else user_message(error)) if text]
    if error is not None:
        raise error
    if failed:
        raise TPAError(failed[0])


def _all_reduce(bank: PrototypeBank) -> None:
    images = bank.counts.new_tensor([bank.images])
    for tensor in (bank.sums, bank.counts, images):
        dist.all_reduce(tensor)
    bank.images = int(images)
