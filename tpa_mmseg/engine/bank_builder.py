"""Builds banks over all ranks: each image of the pool exactly once, one all-reduce, the same banks for any number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import mmengine.dist as dist
from mmengine.dataset import pseudo_collate
from torch.utils.data import DataLoader

from ..console import track
from ..core import ENCODER, AnchorRule, Evidence, PrototypeBank
from ..core.bank_file import TENSORS
from ..core.diagnosis import ConsistencySums, Diagnosis
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
    model: TPASegmentor, pool: Pool, specs: Mapping[str, BankSpec], workers: int = 0
) -> dict[str, PrototypeBank]:
    """Any number of banks from one pass over the pool, every rank its share. Returns the whole banks on every rank.

    Args:
        model: Host and encoders, on their device.
        pool: Images without labels.
        specs: Key -> bank to build; equal specs share a bank.
        workers: Processes that load images.
    """
    banks = {spec: model.new_bank(spec.rule, spec.encoder) for spec in specs.values()}

    def add(name: str, evidence: Evidence) -> None:
        for spec, bank in banks.items():
            if spec.members is None or name in spec.members:
                bank.add(evidence)

    encoders = {spec.encoder for spec in banks}
    _together(lambda: _visit(model, pool, encoders, add, workers, 'Building the bank'))
    for spec, bank in banks.items():
        _all_reduce(bank)
        bank.fingerprint = {**model.fingerprint(), 'pool': pool.fingerprint()}
        bank.pool = [name for name in pool.names() if spec.members is None or name in spec.members]
    return {key: banks[spec] for key, spec in specs.items()}


def build_bank(model: TPASegmentor, pool: Pool, workers: int = 0) -> PrototypeBank:
    """The model's own bank. Args: as for :func:`build_banks`."""
    return build_banks(model, pool, {'bank': BankSpec(model.anchor_rule)}, workers)['bank']


def diagnose(model: TPASegmentor, pool: Pool, bank: PrototypeBank, workers: int = 0) -> Diagnosis:
    """Look at the pool again: do the labels follow the image? Every rank its share; the same on every rank.

    Args:
        model: Host and encoders; what is in its cache does not go through them again.
        pool: The images of the bank.
        bank: The whole bank.
        workers: Processes that load images.
    """
    device = model.device
    sums = ConsistencySums(bank.prototypes().to(device), bank.centered_prototypes().to(device), model.fusion)
    _together(lambda: _visit(model, pool, [ENCODER], lambda _, evidence: sums.add(evidence, ENCODER), workers))
    dist.all_reduce(sums.values)
    return sums.diagnosis()


def _together(work: Callable[[], None]) -> None:
    """Do the work of this rank. Raise on every rank if any rank failed, so that none waits for the others forever."""
    error = None
    try:
        work()
    except Exception as caught:
        error = caught
    failed = [text for text in dist.all_gather_object(None if error is None else user_message(error)) if text]
    if error is not None:
        raise error
    if failed:
        raise TPAError(failed[0])


def _visit(
    model: TPASegmentor,
    pool: Pool,
    encoders: Collection[str],
    take: Callable[[str, Evidence], None],
    workers: int,
    title: str = 'Looking at the pool again',
) -> None:
    """Calls ``take`` with the name and the evidence of every image of this rank's share of the pool."""
    rank, world = dist.get_dist_info()
    # Not a DistributedSampler: it pads the last ranks with repeats, which would be counted twice.
    share = pool.subset(range(rank, len(pool), world))
    # before_test fires before the Runner puts the model into evaluation mode.
    model.eval()
    model.host.reset()
    loader = DataLoader(share, batch_size=1, num_workers=workers, collate_fn=pseudo_collate)
    progress = track(loader, title, show=dist.is_main_process())
    for name, data in zip(share.names(), progress, strict=True):
        # A pool image is often a test image too: what the networks say about it is kept, if there is a cache.
        for evidence, _ in model.look(data, encoders, keep=True):
            take(name, evidence)
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


def _all_reduce(bank: PrototypeBank) -> None:
    images = bank.counts.new_tensor([bank.images])
    for tensor in (*(getattr(bank, name) for name in TENSORS), images):
        dist.all_reduce(tensor)
    bank.images = int(images)
