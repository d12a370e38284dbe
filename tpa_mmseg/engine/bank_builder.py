"""Builds banks over all ranks: each image of the pool exactly once, one all-reduce, the same banks for any number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import mmengine.dist as dist
from mmengine.dataset import pseudo_collate
from torch.utils.data import DataLoader

from ..console import track
from ..core import ENCODER, AnchorRule, PrototypeBank
from ..datasets import Pool
from ..errors import TPAError, user_message
from ..segmentors import TPASegmentor


@dataclass(frozen=True)
class BankSpec:
    """A bank to be built.

    Args:
        rule: What an anchor is.
        encoder: Name of the encoder whose features it sums.
        members: Names of its images among those of the pool. None: all of them.
    """

    rule: AnchorRule
    encoder: str = ENCODER
    members: frozenset[str] | None = None


def build_banks(
    model: TPASegmentor, pool: Pool, specs: Mapping[str, BankSpec], workers: int = 0, batch_size: int = 1
) -> dict[str, PrototypeBank]:
    """Any number of banks from one pass over the pool, every rank its share. Returns the whole banks on every rank.

    Args:
        model: Host and encoders, on their device.
        pool: Images without labels.
        specs: Key -> bank to build; equal specs share a bank.
        workers: Processes that load images.
        batch_size: Images that go through the networks together.
    """
    rank, world = dist.get_dist_info()
    # Not a DistributedSampler: it pads the last ranks with repeats, which would be counted twice.
    share = pool.subset(range(rank, len(pool), world))
    banks = {spec: model.new_bank(spec.rule, spec.encoder) for spec in specs.values()}
    error = None
    try:
        _fill(model, share, banks, workers, batch_size)
    except Exception as caught:
        error = caught
    _raise_together(error)
    for spec, bank in banks.items():
        _all_reduce(bank)
        bank.fingerprint = {**model.fingerprint(), 'pool': pool.fingerprint()}
        bank.pool = [name for name in pool.names() if spec.members is None or name in spec.members]
    return {key: banks[spec] for key, spec in specs.items()}


def build_bank(model: TPASegmentor, pool: Pool, workers: int = 0, batch_size: int = 1) -> PrototypeBank:
    """The model's own bank. Args: as for :func:`build_banks`."""
    return build_banks(model, pool, {'bank': BankSpec(model.anchor_rule)}, workers, batch_size)['bank']


def _fill(
    model: TPASegmentor, share: Pool, banks: Mapping[BankSpec, PrototypeBank], workers: int, batch_size: int
) -> None:
    # before_test fires before the Runner puts the model into evaluation mode.
    model.eval()
    model.host.reset()
    encoders = {spec.encoder for spec in banks}
    loader = DataLoader(
        share, batch_size, num_workers=workers, collate_fn=pseudo_collate, pin_memory=model.device.type == 'cuda'
    )
    batches = iter(loader)  # forks its workers before there is a progress bar to inherit
    # A pool image is often a test image too: what the networks say about it is kept, if there is a cache.
    seen = (evidence for data in batches for evidence, _ in model.look(data, encoders, keep=True))
    progress = track(seen, 'Building the bank', len(share), show=dist.is_main_process())
    for name, evidence in zip(share.names(), progress, strict=True):
        for spec, bank in banks.items():
            if spec.members is None or name in spec.members:
                bank.add(evidence)
        evidence.release()


def save_on_main(bank: PrototypeBank, path: Path) -> None:
    """Save on rank 0. An error there is raised on every rank, so that none goes on alone."""
    failure: list[str | None] = [None]
    if dist.is_main_process():
        try:
            bank.save(path)
        except TPAError as error:
            failure[0] = str(error)
    dist.broadcast_object_list(failure)
    if failure[0] is not None:
        raise TPAError(failure[0])


def _raise_together(error: Exception | None) -> None:
    """Raise on every rank if any rank failed, so that none waits for the others forever."""
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
