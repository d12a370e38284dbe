"""What a shard writes: label images in a tar or run-length masks in Parquet, and a table of areas."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from ..apis import Segmentation
from ..io import atomic_write

#: Form of the labels -> name of their file.
FORMS = {'png': 'labels.tar', 'rle': 'masks.parquet'}
AREAS = 'areas.parquet'
_AREA = 'image:string name:string pixels:int64 share:float64 host_pixels:int64 host_share:float64'
_MASK = 'image:string height:int32 width:int32 label:int32'
_AREA_SCHEMA, _MASK_SCHEMA = (pa.schema(dict(c.split(':') for c in columns.split())) for columns in (_AREA, _MASK))
_MASK_SCHEMA = _MASK_SCHEMA.append(pa.field('counts', pa.list_(pa.uint32())))
# Rows that are held before they are written.
_ROWS = 8192


class Encoded(NamedTuple):
    """The labels of an image as they are written."""

    image: str  #: its name
    areas: list[dict]  #: rows of the table of areas
    shares: np.ndarray  #: (2, C) share of every class by the host and with TPA
    labels: bytes | list[dict]  #: a PNG, or the rows of the table of masks


def encode(result: Segmentation, form: str) -> Encoded:
    """Encodes labels, which needs no model: other threads may do it. Args: form: one of :data:`FORMS`."""
    areas = [{'image': result.name, **area._asdict()} for area in result.areas if area.pixels or area.host_pixels]
    shares = np.array([(area.host_share, area.share) for area in result.areas]).T
    if form == 'rle':
        about = dict(zip(('image', 'height', 'width'), (result.name, *result.labels.shape), strict=True))
        masks = [{**about, 'label': label, 'counts': counts} for label, counts in run_lengths(result.labels)]
        return Encoded(result.name, areas, shares, masks)
    result.label_image().save(file := io.BytesIO(), format='PNG')
    return Encoded(result.name, areas, shares, file.getvalue())


def run_lengths(labels: np.ndarray) -> list[tuple[int, list[int]]]:
    """Returns each label of an (H, W) map and the counts of its mask as COCO has them: column by column, 0 first."""
    flat = labels.ravel(order='F')
    starts = np.flatnonzero(np.diff(flat, prepend=flat[:1] ^ 1))
    stops, owners = np.append(starts[1:], flat.size), flat[starts]
    masks = []
    for label in np.unique(owners):
        own = owners == label
        # Where the mask turns on and off; the gaps between these places are the counts.
        turns = np.stack([starts[own], stops[own]], 1).ravel()
        counts = np.diff(turns, prepend=0, append=flat.size)
        masks.append((int(label), (counts if counts[-1] else counts[:-1]).tolist()))
    return masks


def mask_of(row: Mapping) -> np.ndarray:
    """Returns the (H, W) bool mask of a row of ``masks.parquet``."""
    flat = np.repeat(np.arange(len(row['counts'])) % 2 == 1, row['counts'])
    return flat.reshape(row['height'], row['width'], order='F')


class ShardWriter:
    """Writes the files of a shard, which appear when all images are there. Use it in a ``with`` statement.

    Args:
        folder: The folder of the shard.
        form: Of the labels, one of :data:`FORMS`.

    Attributes:
        images: Number of images that were added.
        shares: (2, C) sums of the shares of every class, by the host and with TPA.
    """

    def __init__(self, folder: Path, form: str) -> None:
        self.images, self.shares = 0, 0
        for left in folder.glob('.*.tmp'):
            left.unlink()  # of a process that was killed
        with ExitStack() as stack:
            areas, labels = (stack.enter_context(atomic_write(folder / name)) for name in (AREAS, FORMS[form]))
            self._areas = stack.enter_context(_Table(areas, _AREA_SCHEMA))
            made = tarfile.TarFile(fileobj=labels, mode='w') if form == 'png' else _Table(labels, _MASK_SCHEMA)
            self._labels = stack.enter_context(made)
            self._stack = stack.pop_all()

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)

    def add(self, encoded: Encoded) -> None:
        """Writes the labels of an image."""
        self.images, self.shares = self.images + 1, self.shares + encoded.shares
        self._areas.add(encoded.areas)
        if isinstance(encoded.labels, list):
            self._labels.add(encoded.labels)
            return
        member = tarfile.TarInfo(f'{encoded.image}.png')
        member.size = len(encoded.labels)
        self._labels.addfile(member, io.BytesIO(encoded.labels))
        # tarfile would keep every member of a tar of any length.
        self._labels.members.clear()


class _Table(pq.ParquetWriter):
    """A Parquet file that is written some thousand rows at a time. Args: file; schema."""

    def __init__(self, file: IO, schema: pa.Schema) -> None:
        super().__init__(file, schema, compression='zstd')
        self._rows: list[dict] = []

    def add(self, rows: Sequence[dict], least: int = _ROWS) -> None:
        self._rows += rows
        if len(self._rows) >= least:
            self.write_table(pa.Table.from_pylist(self._rows, self.schema))
            self._rows = []

    def close(self) -> None:
        if self.is_open:
            self.add((), least=0)
        super().close()


def join_areas(parts: Sequence[Path], out: Path) -> None:
    """Writes the tables of areas of all shards into one, a batch of rows at a time."""
    with atomic_write(out) as file, pq.ParquetWriter(file, _AREA_SCHEMA, compression='zstd') as writer:
        for batch in pa.dataset.dataset(parts, _AREA_SCHEMA).to_batches():
            writer.write_batch(batch)
