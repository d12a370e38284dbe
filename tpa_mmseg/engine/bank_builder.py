"""Builds banks over all ranks: each image of the pool exactly once, one all-reduce, the same banks for any number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import mmengine.dist as dist
from mmengine.dataset import pseudo_collate
from mmengine.logging import print_log
from torch.utils.data import DataLoader

from ..console import track
from ..core import ENCODER, AnchorRule, Evidence, Fusion, PrototypeBank
from ..core.bank_file import TENSORS, as_json
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
    shared = _parts(pool.names(), specs.values())
    parts = {part: model.new_bank(part.rule, part.encoder) for part in shared}

    def add(name: str, evidence: Evidence) -> None:
        for part, bank in parts.items():
            if part.members is None or name in part.members:
                bank.add(evidence)

    _visit(model, pool, {part.encoder for part in parts}, add, 'Building the bank', workers, batch_size)
    for bank in parts.values():
        _all_reduce(bank)
    banks = {}
    for spec in dict.fromkeys(specs.values()):
        banks[spec] = model.new_bank(spec.rule, spec.encoder)
        for part, holders in shared.items():
            if spec in holders:
                banks[spec].merge(parts[part])
        banks[spec].fingerprint, banks[spec].pool = _fingerprint(model, pool, spec), _names(pool, spec)
    return {key: banks[spec] for key, spec in specs.items()}


def _parts(names: Sequence[str], specs: Iterable[BankSpec]) -> dict[BankSpec, frozenset[BankSpec]]:
    """Disjoint banks whose sums are those that are wanted: an image is added once, however many banks have it.

    Args:
        names: Those of the pool's images.
        specs: The banks that are wanted, such as nested ones.

    Returns:
        Part -> the specs that it is a part of.
    """
    # Lists, not sets: every rank must have the same order.
    wanted = list(dict.fromkeys(specs))
    parts: dict[tuple, list[str]] = {}
    for name in names:
        held = [spec for spec in wanted if spec.members is None or name in spec.members]
        for rule, encoder in dict.fromkeys((spec.rule, spec.encoder) for spec in held):
            holders = frozenset(spec for spec in held if (spec.rule, spec.encoder) == (rule, encoder))
            parts.setdefault((rule, encoder, holders), []).append(name)
    return {BankSpec(rule, encoder, frozenset(found)): holders for (rule, encoder, holders), found in parts.items()}


def build_bank(model: TPASegmentor, pool: Pool, workers: int = 0, batch_size: int = 1) -> PrototypeBank:
    """The model's own bank. Args: as for :func:`build_banks`."""
    return build_banks(model, pool, {'bank': BankSpec(model.anchor_rule)}, workers, batch_size)['bank']


def diagnose(
    model: TPASegmentor,
    pool: Pool,
    wanted: Mapping[str, tuple[PrototypeBank, Fusion]],
    workers: int = 0,
    batch_size: int = 1,
) -> dict[str, Diagnosis]:
    """Look at the pool again: do the labels follow the image? Every rank its share; the same on every rank.

    Args:
        model: Host and encoders; what is in its cache does not go through them again.
        pool: The images of the banks.
        wanted: Key -> a whole bank, and what it is used with.
        workers, batch_size: As for :func:`build_banks`.
    """
    sums = {}
    for key, (bank, fusion) in wanted.items():
        centered = bank.centered_prototypes(fusion.consistency.center).to(model.device)
        sums[key] = ConsistencySums(bank.prototypes().to(model.device), centered, fusion)

    def add(name: str, evidence: Evidence) -> None:
        for key, (bank, _) in wanted.items():
            sums[key].add(evidence, bank.encoder)

    encoders = {bank.encoder for bank, _ in wanted.values()}
    _visit(model, pool, encoders, add, 'Looking at the pool again', workers, batch_size)
    for each in sums.values():
        dist.all_reduce(each.values)
    return {key: each.diagnosis() for key, each in sums.items()}


def _visit(
    model: TPASegmentor,
    pool: Pool,
    encoders: Collection[str],
    take: Callable[[str, Evidence], None],
    title: str,
    workers: int,
    batch_size: int,
) -> None:
    """Calls ``take`` with the name and the evidence of every image of this rank's share of the pool.

    Raises on every rank if any rank failed, so that none waits for the others forever.
    """
    rank, world = dist.get_dist_info()
    # Not a DistributedSampler: it pads the last ranks with repeats, which would be counted twice.
    share = pool.subset(range(rank, len(pool), world))
    # before_test fires before the Runner puts the model into evaluation mode.
    model.eval()
    model.host.reset()
    # Hosts that adapt to a batch are to adapt to each image alone.
    batch_size = batch_size if model.host.images_are_independent else 1
    loader = DataLoader(
        share, batch_size, num_workers=workers, collate_fn=pseudo_collate, pin_memory=model.device.type == 'cuda'
    )
    error = None
    try:
        batches = iter(loader)  # forks its workers before there is a progress bar to inherit
        # A pool image is often a test image too: what the networks say about it is kept, if there is a cache.
        seen = (evidence for data in batches for evidence, _ in model.look(data, encoders, keep=True))
        progress = track(seen, title, len(share), show=dist.is_main_process())
        for name, evidence in zip(share.names(), progress, strict=True):
            take(name, evidence)
            evidence.release()
    except Exception as caught:
        error = caught
    _raise_together(error)


def _fingerprint(model: TPASegmentor, pool: Pool, spec: BankSpec) -> dict:
    encoder = model.encoders[spec.encoder].fingerprint()
    return {**model.fingerprint(), 'encoder': encoder, 'pool': pool.fingerprint()}


def _names(pool: Pool, spec: BankSpec) -> list[str]:
    return [name for name in pool.names() if spec.members is None or name in spec.members]


def find_bank(path: Path, model: TPASegmentor, pool: Pool, spec: BankSpec) -> PrototypeBank | None:
    """The bank in a file, on every rank, if it is the one that would be built. Args: as for :func:`build_banks`."""
    # Rank 0 decides for all: the others may not see the file, or see it a moment later.
    found = [_find(path, model, pool, spec) if dist.is_main_process() else None]
    dist.broadcast_object_list(found)
    return found[0]


def _find(path: Path, model: TPASegmentor, pool: Pool, spec: BankSpec) -> PrototypeBank | None:
    if not path.exists():
        return None
    try:
        bank = PrototypeBank.load(path)
    except TPAError as error:
        print_log(f'Building a new bank: {error}', 'current')
        return None
    expected = {
        **_fingerprint(model, pool, spec),
        'anchors': spec.rule.as_dict(),
        'choice of images': _names(pool, spec),
    }
    actual = {**bank.fingerprint, 'anchors': bank.rule.as_dict(), 'choice of images': bank.pool}
    changed = [part for part, value in expected.items() if actual.get(part) != as_json(value)]
    if changed:
        print_log(f'Building a new bank: {path} was made with another {", ".join(changed)}.', 'current')
        return None
    print_log(f'Using the bank {path} of an earlier run.', 'current')
    return bank


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
    for tensor in (*(getattr(bank, name) for name in TENSORS), images):
        dist.all_reduce(tensor)
    bank.images = int(images)
