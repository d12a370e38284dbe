"""A bulk job: its bank, its shards, and the manifest at the end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
from mmengine.config import Config

from ..core import PrototypeBank
from ..core.bank_file import as_json, check_fingerprint
from ..errors import TPAError
from ..evaluation import describe_bank
from ..io import write_json
from ..launch import LaunchOptions, State, launch
from ..version import __version__
from .output import AREAS, join_areas
from .shard import BANK, BankShard, BulkJob, SegmentShard, Shard
from .source import Part, sample, split

# Images of a pool that are worth loading the models for.
_POOL_SHARD = 100


def segment(
    job: BulkJob,
    parts: Sequence[Part],
    options: LaunchOptions,
    pool: Sequence[Part] | None = None,
    pool_size: int = 100,
) -> dict | None:
    """Segments a source. The bank is built first and the same for all shards.

    Args:
        job: What to do. If it has a bank and there is a pool, the pool is added.
        parts: The source.
        options: Where to do it.
        pool: Images to adapt to. Default: a sample of the source, unless there is a bank.
        pool_size: Most images of the pool, drawn with a fixed seed; 0 for all.

    Returns:
        The manifest; None if not all shards are done because that was not asked for.
    """
    if job.model.get('tpa', True) and (pool is not None or job.bank is None):
        shards = min(job.shards, -(-pool_size // _POOL_SHARD)) if pool_size else job.shards
        drawn = sample(pool or parts, pool_size) if pool_size else list(pool or parts)
        first, file = replace(job, out=job.out / 'pool', shards=shards), job.out / BANK
        if build_bank(first, drawn, replace(options, wait=True, limit=0), file) is not None:
            job = replace(job, bank=file)
        elif not options.dry_run:
            return None
    tasks = _run(SegmentShard, job, parts, options)
    return None if tasks is None else _finish(job, tasks)


def build_bank(job: BulkJob, parts: Sequence[Part], options: LaunchOptions, file: Path) -> PrototypeBank | None:
    """Builds a bank from all images of a source: partial banks of the shards, merged in their order.

    Args:
        job: What to do; its folder has the partial banks. Its bank, if any, is the one to add to.
        parts: The source.
        options: Where to do it.
        file: Where the bank goes.

    Returns:
        The bank; None if not all shards are done because that was not asked for.
    """
    tasks = _run(BankShard, job, parts, options)
    if tasks is None:
        return None
    files = [task.folder.path / BANK for task in tasks]
    bank, *others = map(PrototypeBank.load, files if job.bank is None else [job.bank, *files])
    for other in others:
        check_fingerprint(bank.fingerprint, other.fingerprint, job.bank or files[0])
        if other.rule != bank.rule:
            raise TPAError(f'The bank {job.bank} was made with other anchors ({bank.rule}) than the model has.')
        bank.merge(other)
    if not bank.images:
        raise TPAError(f'None of the images of the pool could be read. The logs in {job.out} have the reasons.')
    bank.save(file)
    print(describe_bank(bank, bank.fingerprint['classes']), flush=True)
    return bank


def _run(kind: type[Shard], job: BulkJob, parts: Sequence[Part], options: LaunchOptions) -> list[Shard] | None:
    """Executes the shards that are not done. Returns all; None if some are left because that was not asked for."""
    _begin(job, parts, options)
    job = replace(job, out=job.out.absolute(), bank=job.bank and Path(job.bank).absolute())
    tasks = [kind(job, number, share) for number, share in enumerate(split(parts, job.shards))]
    missing = len(tasks) - launch(tasks, options, job.out, 'shards')[State.DONE]
    if not missing:
        return tasks
    if options.dry_run or not options.wait or options.limit:
        return None
    raise TPAError(f'{missing} of {len(tasks)} shards in {job.out} are not done. Start again: what is done stays.')


def _begin(job: BulkJob, parts: Sequence[Part], options: LaunchOptions) -> None:
    """Writes down all that the output depends on, or checks that it is what was begun in this folder."""
    files = '\n'.join(f'{part.address} {part.limit}' for part in parts)
    host = str(job.model.get('host', ''))
    wanted = as_json(
        {
            **asdict(replace(job, out=None, bank=job.bank and _digest(Path(job.bank).read_bytes()))),
            'version': __version__,
            'source': f'{len(parts)} files with digest {_digest(files.encode())}',
            'config': _digest(Config.fromfile(host).pretty_text.encode()) if host.endswith('.py') else None,
        }
    )
    file = job.out / 'job.json'
    begun = json.loads(file.read_text(encoding='utf-8')) if file.exists() else wanted
    for key, value in wanted.items():
        if value != (before := begun.get(key)):
            other = f'{job.out} has shards of another job: its {key} was {before}, not {value}.'
            raise TPAError(f'{other} Choose another folder, or delete this one.')
    if not options.dry_run:
        write_json(file, wanted)


def _finish(job: BulkJob, tasks: Sequence[Shard]) -> dict:
    """Writes the table of all areas and the manifest. Returns the manifest."""
    summaries = [task.summary for task in tasks]
    images = sum(summary['images'] for summary in summaries)
    if not images:
        raise TPAError(f'None of the images could be read. The logs in {job.out} have the reasons.')
    join_areas([task.folder.path / AREAS for task in tasks], job.out / AREAS)
    classes = summaries[0]['classes']
    areas = pd.read_parquet(job.out / AREAS, columns=['class', 'host_share', 'share']).groupby('class').sum()
    labels = [f'shards/{task.name}/{task.files[0]}' for task in tasks]
    about = zip(labels, summaries, strict=True)
    manifest = {
        'model': summaries[0]['model'],
        'classes': classes,
        'images': images,
        'skipped': [skipped for summary in summaries for skipped in summary['skipped']],
        **(areas.reindex(classes, fill_value=0.0) / images).to_dict('list'),
        'shards': [{'labels': file, 'images': one['images'], 'seconds': one['seconds']} for file, one in about],
    }
    write_json(job.out / 'manifest.json', manifest)
    return manifest


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
