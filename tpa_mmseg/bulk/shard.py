"""The tasks of bulk work: segment a shard of images with a frozen bank, or add a shard of a pool to a bank."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from mmengine.device import get_device

from ..apis import ImageSource, Segmenter, Skipped
from ..apis.images import UnreadableImage
from ..apis.loading import PreparedImage
from ..core import PrototypeBank
from ..errors import TPAError
from ..io import write_json
from ..launch import Task, TaskFolder
from .output import AREAS, FORMS, ShardWriter, encode
from .pictures import read_pictures
from .source import Part

T = TypeVar('T')

SUMMARY, BANK = 'summary.json', 'bank.safetensors'
#: Images that go through the models together on a GPU. A CPU gains nothing from a batch.
GPU_BATCH = 8
# Threads that decode images and encode labels.
_THREADS = 4


@dataclass(frozen=True)
class Shard(Task):
    """A share of a source. Memory does not grow with it: two batches are held.

    Args:
        out: Folder of all shards.
        number: Of this one.
        parts: Its files.
        model: Options of :class:`~tpa_mmseg.apis.Segmenter`.
        batch_size: Images that go through the models together. Default: 8 on a GPU, 1 on a CPU.
        column: Column of Parquet files that has the images.
    """

    out: Path
    number: int
    parts: tuple[Part, ...]
    model: dict = field(hash=False)
    batch_size: int | None = None
    column: str | None = None

    @property
    def folder(self) -> TaskFolder:
        return TaskFolder(self.out / f'{self.number:05d}')

    @property
    def summary(self) -> dict:
        """What the shard wrote last. Raises TPAError if it is damaged."""
        path = self.folder.path / SUMMARY
        try:
            return json.loads(path.read_text(encoding='utf-8'))
        except ValueError as error:
            raise TPAError(f'{path} is damaged ({error}). Delete it and start again.') from error

    @property
    def size(self) -> int:
        return sum(part.limit or 1 for part in self.parts)

    def finished(self) -> bool:
        files = (SUMMARY, *self.files)
        return all((self.folder.path / name).exists() for name in files) and 'images' in self.summary

    def reset(self) -> None:
        super().reset()
        (self.folder.path / SUMMARY).unlink(missing_ok=True)

    def work(self) -> None:
        started, skipped = time.monotonic(), []
        segmenter = Segmenter(**self.model, cache_bytes=0, progress=False)
        if not segmenter.images_are_independent:
            raise TPAError(
                f'{segmenter.description} adapts from image to image, so its labels depend on their order. Use another '
                'host for shards.'
            )
        with ThreadPoolExecutor(_THREADS) as pool:
            summary = self.process(segmenter, pool, _count(self, self._batches(segmenter, pool, skipped)))
        seconds = time.monotonic() - started
        write_json(
            self.folder.path / SUMMARY,
            {**summary, 'classes': segmenter.classes, 'skipped': [asdict(one) for one in skipped], 'seconds': seconds},
        )

    @property
    @abstractmethod
    def files(self) -> tuple[str, ...]:
        """Names of the output's files."""

    @abstractmethod
    def process(self, segmenter: Segmenter, pool: Executor, batches: Iterable[list[PreparedImage]]) -> dict:
        """Writes the output, except for the summary, whose content it returns."""

    def wanted(self, image: ImageSource) -> bool:
        """Whether an image has to be processed."""
        return True

    def _batches(self, segmenter: Segmenter, pool: Executor, skipped: list[Skipped]) -> Iterator[list[PreparedImage]]:
        """Yields images that are read and decoded while the models run on those before."""

        def skip(name: str, reason: str) -> None:
            print(f'Skipped {name}: {reason}', flush=True)
            skipped.append(Skipped(name, reason))

        def prepare(image: ImageSource) -> PreparedImage | tuple[str, str]:
            try:
                return segmenter.prepare(image)
            except UnreadableImage as error:
                return image.name, str(error)

        def read() -> Iterator[list[PreparedImage]]:
            images = filter(self.wanted, read_pictures(self.parts, skip, self.column))
            size = self.batch_size or (1 if (self.model.get('device') or get_device()) == 'cpu' else GPU_BATCH)
            while group := list(islice(images, size)):
                made = list(pool.map(prepare, group))
                for name, reason in (one for one in made if not isinstance(one, PreparedImage)):
                    skip(name, reason)
                yield [one for one in made if isinstance(one, PreparedImage)]

        return one_ahead(read())


@dataclass(frozen=True)
class SegmentShard(Shard):
    """Segments a shard. Args: form: Of the labels, one of :data:`~tpa_mmseg.bulk.output.FORMS`."""

    form: str = 'png'

    @property
    def files(self) -> tuple[str, ...]:
        return FORMS[self.form], AREAS

    def process(self, segmenter: Segmenter, pool: Executor, batches: Iterable[list[PreparedImage]]) -> dict:
        pending = iter(())
        with ShardWriter(self.folder.path, self.form, len(segmenter.classes)) as writer:
            for batch in chain(batches, [[]]):
                results = segmenter.segment_batch(batch) if batch else []
                # The labels before these were encoded while the models ran.
                for encoded in pending:
                    writer.add(encoded)
                pending = pool.map(partial(encode, form=self.form), results)
        return {'images': writer.images, 'shares': writer.shares.tolist(), 'description': segmenter.description}


@dataclass(frozen=True)
class BankShard(Shard):
    """Adds a shard of a pool to an empty bank. Args: known: Bank whose images are left out."""

    known: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        return (BANK,)

    def process(self, segmenter: Segmenter, pool: Executor, batches: Iterable[list[PreparedImage]]) -> dict:
        for batch in batches:
            if batch:
                segmenter.adapt_batch(batch)
        segmenter.save_bank(self.folder.path / BANK)
        return {'images': segmenter.bank.images}

    def wanted(self, image: ImageSource) -> bool:
        return self.known is None or image.key not in _known(self.known)


@cache
def _known(path: str) -> frozenset[str]:
    """Returns the images of a bank, read once in a process."""
    return frozenset(PrototypeBank.load(path).pool)


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yields items, and makes the next one in another thread meanwhile."""
    end = object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = thread.submit(next, items, end)
            yield item


def _count(shard: Shard, batches: Iterable[list]) -> Iterator[list]:
    """Yields batches and notes how far the shard is."""
    folder, done = shard.folder, 0
    for batch in batches:
        yield batch
        done += len(batch)
        # A tar does not contain how many there are.
        folder.say(done, max(shard.size, done + 1))
    folder.say(done, done)
