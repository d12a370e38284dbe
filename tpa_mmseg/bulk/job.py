"""A bulk job: its description, its bank, its shards, and the manifest at the end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mmengine.config import Config

from ..core import PrototypeBank
from ..core.bank_file import as_json, check_fingerprint
from ..errors import TPAError
from ..io import write_json
from ..launch import LaunchOptions, State, launch
from ..version import __version__
from .output import AREAS, join_tables
from .shard import BANK, BankShard, SegmentShard, Shard
from .source import Part, digest, sample, split

MANIFEST = 'manifest.json'
# Images of a pool that are worth loading the models for.
_POOL_SHARD = 100


@dataclass(frozen=True)
class BulkJob:
    """What all shards of a job have in common.

    Args:
        out: Folder of the output.
        model: Options of :class:`~tpa_mmseg.apis.Segmenter`, as plain data.
        shards: Number of tasks.
        form: Of the labels: ``'png'`` in a tar, or ``'rle'`` in Parquet.
        batch_size: Images that go through the models together. Default: 8 on a GPU, 1 on a CPU.
        column: Column of Parquet files that has the images.
    """

    out: Path
    model: dict
    shards: int
    form: str = 'png'
    batch_size: int | None = None
    column: str | None = None

    def describe(self, parts: Sequence[Part], **more: object) -> dict:
        """Returns all that the output depends on, as JSON has it."""
        files = {'files': len(parts), 'digest': digest(parts)}
        host = str(self.model.get('host', ''))
        config = {'config': _hash(Config.fromfile(host).pretty_text.encode())} if host.endswith('.py') else {}
        own = {key: value for key, value in asdict(self).items() if key != 'out'}
        return as_json({'version': __version__, 'source': files, **own, **config, **more})


def segment(
    job: BulkJob,
    parts: Sequence[Part],
    options: LaunchOptions,
    pool: Sequence[Part] | None = None,
    pool_size: int = 100,
    bank: str | None = None,
) -> dict | None:
    """Segments a source. The bank is built first and the same for all shards.

    Args:
        job: What to do.
        parts: The source.
        options: Where to do it.
        pool: Images to adapt to. Default: a sample of the source, unless there is a bank.
        pool_size: Most images of the pool, drawn with a fixed seed; 0 for all.
        bank: File of a bank to use, or to add the pool to.

    Returns:
        The manifest; None if not all shards are done yet because that was not asked for.
    """
    if job.model.get('tpa', True):
        if pool is not None or bank is None:
            drawn = list(pool or parts) if not pool_size else sample(pool or parts, pool_size)
            shards = min(job.shards, -(-pool_size // _POOL_SHARD)) if pool_size else job.shards
            first = replace(job, out=job.out / 'pool', shards=shards)
            if build_bank(first, drawn, replace(options, wait=True, limit=0), job.out / BANK, bank) is None:
                return None
            bank = str(job.out / BANK)
    made_with = {'bank': _hash(Path(bank).read_bytes())} if bank else {}
    description = _begin(job, job.describe(parts, **made_with), options)
    if bank:
        job = replace(job, model={**job.model, 'bank': str(Path(bank).absolute())})
    tasks = _tasks(SegmentShard, job, parts, form=job.form)
    return _finish(job, tasks, description) if _run(tasks, job, options) else None


def build_bank(
    job: BulkJob, parts: Sequence[Part], options: LaunchOptions, file: Path, extend: str | None = None
) -> PrototypeBank | None:
    """Builds a bank from all images of a source: partial banks of the shards, merged in their order.

    Args:
        job: What to do; its folder has the partial banks.
        parts: The source.
        options: Where to do it.
        file: Where the bank goes.
        extend: Bank to add to. Images that it contains are left out.

    Returns:
        The bank; None if not all shards are done yet because that was not asked for.
    """
    made_with = {'extend': _hash(Path(extend).read_bytes())} if extend else {}
    _begin(job, job.describe(parts, **made_with), options)
    tasks = _tasks(BankShard, job, parts, known=extend and str(Path(extend).absolute()))
    if not _run(tasks, job, options):
        return None
    banks = [PrototypeBank.load(task.folder.path / BANK) for task in tasks]
    if extend:
        banks.insert(0, PrototypeBank.load(extend))
    bank, *others = banks
    for other in others:
        check_fingerprint(bank.fingerprint, other.fingerprint, extend or job.out)
        if other.rule != bank.rule:
            raise TPAError(f'The bank {extend} was made with other anchors ({bank.rule}) than are asked for.')
        bank.merge(other)
    if not bank.images:
        raise TPAError(f'None of the images of the pool could be read. {job.out} has the reasons.')
    bank.save(file)
    return bank


def _tasks(kind: type[Shard], job: BulkJob, parts: Sequence[Part], **more: object) -> list[Shard]:
    shares = split(parts, job.shards)
    common = {'batch_size': job.batch_size, 'column': job.column, **more}
    out = job.out.absolute() / 'shards'
    return [kind(out, number, share, job.model, **common) for number, share in enumerate(shares)]


def _begin(job: BulkJob, description: dict, options: LaunchOptions) -> dict:
    """Writes down what is done, or checks that it is what was begun here. Returns it."""
    file = job.out / 'job.json'
    if file.exists():
        begun = json.loads(file.read_text(encoding='utf-8'))
        for key in description | begun:
            if description.get(key) != begun.get(key):
                raise TPAError(
                    f'{job.out} has shards of another job: its {key} was {begun.get(key)}, not {description.get(key)}. '
                    'Choose another folder, or delete this one.'
                )
    elif not options.dry_run:
        write_json(file, description)
    return description


def _run(tasks: Sequence[Shard], job: BulkJob, options: LaunchOptions) -> bool:
    """Executes what is not done. Returns whether all is; raises TPAError if something failed."""
    states = launch(tasks, options, job.out, 'shards')
    missing = len(tasks) - states[State.DONE]
    if not missing:
        return True
    if options.dry_run or not options.wait or options.limit:
        return False
    raise TPAError(f'{missing} of {len(tasks)} shards in {job.out} are not done. Start again: what is done stays.')


def _finish(job: BulkJob, tasks: Sequence[Shard], description: dict) -> dict:
    """Writes the table of all areas and the manifest. Returns the manifest."""
    join_tables([task.folder.path / AREAS for task in tasks], job.out / AREAS)
    summaries = [task.summary for task in tasks]
    images = sum(summary['images'] for summary in summaries)
    if not images:
        raise TPAError(f'None of the images could be read. {job.out} has the reasons.')
    shares = [[sum(values) / images for values in zip(*lines, strict=True)] for lines in _by_model(summaries)]
    manifest = {
        'model': summaries[0]['description'],
        'classes': summaries[0]['classes'],
        'images': images,
        'skipped': [one for summary in summaries for one in summary['skipped']],
        'host_share': shares[0],
        'share': shares[1],
        'areas': AREAS,
        'shards': [
            {
                'folder': task.folder.path.relative_to(job.out.absolute()).as_posix(),
                'images': summary['images'],
                'seconds': summary['seconds'],
                'bytes': {name: (task.folder.path / name).stat().st_size for name in task.files},
            }
            for task, summary in zip(tasks, summaries, strict=True)
        ],
        'job': description,
    }
    write_json(job.out / MANIFEST, manifest)
    return manifest


def _by_model(summaries: Sequence[dict]) -> list[list[list[float]]]:
    """Returns the shares of all classes in each shard: by the host, and with TPA."""
    return [[summary['shares'][row] for summary in summaries] for row in range(2)]


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
