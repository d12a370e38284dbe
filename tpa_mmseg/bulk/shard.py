"""The tasks of bulk work: segment a shard of images with a frozen bank, or add a shard of a pool to a bank."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from mmengine.device import get_device

from ..apis import Segmenter, Skipped
from ..apis.images import ImageSource, UnreadableImage
from ..apis.loading import PreparedImage
from ..core import PrototypeBank
from ..errors import TPAError
from ..io import write_json
from ..launch import Task, TaskFolder
from .output import AREAS, FORMS, encode, shard_files
from .pictures import Skip, read_pictures
from .source import Part

T = TypeVar('T')
Batches = Iterator[list[PreparedImage]]

SUMMARY, BANK = 'summary.json', 'bank.safetensors'
#: Images that go through the models together on a GPU. A CPU gains nothing from a batch.
GPU_BATCH = 8
# Threads that read and decode images and encode labels.
_THREADS = 5


@dataclass(frozen=True)
class BulkJob:
    """What all shards of a job have in common.

    Args:
        out: Folder of the output.
        model: Options of :class:`~tpa_mmseg.apis.Segmenter`, as plain data.
        shards: Number of tasks.
        form: Of the labels: ``'png'`` in a tar, or ``'rle'`` in Parquet.
        batch_size: Images that go through the models together. Default: 8 on a GPU, 1 on a CPU.
        column: Column of Parquet files that has the images. Default: the only one with bytes.
        bank: File of the bank to segment with; or, to build a bank, of one whose images are left out.
    """

    out: Path
    model: dict
    shards: int
    form: str = 'png'
    batch_size: int | None = None
    column: str | None = None
    bank: Path | None = None


@dataclass(frozen=True)
class Shard(Task):
    """A share of a source. Memory does not grow with it: two batches are held.

    Args:
        job: What to do.
        number: Of the shard.
        parts: Its files.
    """

    job: BulkJob
    number: int
    parts: tuple[Part, ...]
    #: Names of the output's files.
    files = (BANK,)

    @property
    def folder(self) -> TaskFolder:
        return TaskFolder(self.job.out / 'shards' / f'{self.number:05d}')

    @property
    def size(self) -> int:
        return sum(1 if part.kind == 'image' else part.limit or 1 for part in self.parts)

    @property
    def summary(self) -> dict:
        """What the shard wrote last."""
        return json.loads((self.folder.path / SUMMARY).read_text(encoding='utf-8'))

    def finished(self) -> bool:
        return all((self.folder.path / name).exists() for name in (SUMMARY, *self.files))

    def reset(self) -> None:
        super().reset()
        (self.folder.path / SUMMARY).unlink(missing_ok=True)

    def work(self) -> None:
        started, skipped = time.monotonic(), []

        def skip(name: str, reason: str) -> None:
            skipped.append(Skipped(name, reason))
            print(f'Skipped {skipped[-1]}', flush=True)

        bank = self.job.bank if isinstance(self, SegmentShard) else None
        segmenter = Segmenter(**self.job.model, bank=bank, cache_bytes=0, progress=False)
        if not segmenter.images_are_independent:
            adapts = f'{segmenter.description} adapts from image to image, so its labels depend on their order.'
            raise TPAError(f'{adapts} Use another host for shards.')
        with ThreadPoolExecutor(_THREADS) as pool:
            summary = self.process(segmenter, pool, one_ahead(self._batches(segmenter, pool, skip), pool))
        # Threads found them in any order.
        left_out = [vars(one) for one in sorted(skipped, key=lambda one: one.name)]
        summary |= {'model': segmenter.description, 'classes': segmenter.classes, 'skipped': left_out}
        write_json(self.folder.path / SUMMARY, {**summary, 'seconds': time.monotonic() - started})

    @abstractmethod
    def process(self, segmenter: Segmenter, pool: Executor, batches: Batches) -> dict:
        """Writes the output, except for the summary, whose content it returns."""

    def _batches(self, segmenter: Segmenter, pool: Executor, skip: Skip) -> Batches:
        """Reads and decodes images. A batch may be empty if none of its images can be decoded."""

        def prepare(image: ImageSource) -> PreparedImage | None:
            try:
                return segmenter.prepare(image)
            except UnreadableImage as error:
                return skip(image.name, str(error))

        folder, images, done = self.folder, self._images(skip), 0
        size = self.job.batch_size or (1 if (self.job.model.get('device') or get_device()) == 'cpu' else GPU_BATCH)
        while group := list(islice(images, size)):
            yield list(filter(None, pool.map(prepare, group)))
            done += len(group)
            # A tar does not contain how many there are.
            folder.say(done, max(self.size, done + 1))
        folder.say(done, done)

    def _images(self, skip: Skip) -> Iterator[ImageSource]:
        return read_pictures(self.parts, skip, self.job.column)


class SegmentShard(Shard):
    """Segments a shard with the bank of the job."""

    @property
    def files(self) -> tuple[str, ...]:
        return FORMS[self.job.form], AREAS

    def process(self, segmenter: Segmenter, pool: Executor, batches: Batches) -> dict:
        images, form = 0, self.job.form
        # Labels are encoded while the models run on the next batch and the one after it is read.
        segmented = one_ahead(map(segmenter.segment_batch, filter(None, batches)), pool)
        with shard_files(self.folder.path, form) as add:
            for results in segmented:
                for result, encoded in zip(results, pool.map(partial(encode, form=form), results), strict=True):
                    add(result, encoded)
                images += len(results)
        return {'images': images}


class BankShard(Shard):
    """Adds a shard of a pool to an empty bank."""

    def process(self, segmenter: Segmenter, pool: Executor, batches: Batches) -> dict:
        for batch in filter(None, batches):
            segmenter.adapt_batch(batch)
        segmenter.save_bank(self.folder.path / BANK)
        return {'images': segmenter.bank.images}

    def _images(self, skip: Skip) -> Iterator[ImageSource]:
        known = frozenset() if self.job.bank is None else frozenset(PrototypeBank.load(self.job.bank).pool)
        return (image for image in super()._images(skip) if not known or image.key not in known)


def one_ahead(items: Iterator[T], pool: Executor) -> Iterator[T]:
    """Yields items, and makes the next one in a thread of a pool meanwhile."""
    end = object()
    coming = pool.submit(next, items, end)
    while (item := coming.result()) is not end:
        coming = pool.submit(next, items, end)
        yield item
