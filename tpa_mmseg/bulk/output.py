"""What a shard writes: label images in a tar or run-length masks in Parquet, and a table of areas."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..apis import Segmentation
from ..io import atomic_write

#: Form of the labels -> name of their file.
FORMS = {'png': 'labels.tar', 'rle': 'masks.parquet'}
AREAS = 'areas.parquet'
_AREA_SCHEMA = pa.schema(
    {
        'image': pa.string(),
        'class': pa.dictionary(pa.int32(), pa.string()),
        'pixels': pa.int64(),
        'share': pa.float64(),
        'host_pixels': pa.int64(),
        'host_share': pa.float64(),
    }
)
_MASK_SCHEMA = pa.schema(
    {
        'image': pa.string(),
        'height': pa.int32(),
        'width': pa.int32(),
        'label': pa.int32(),
        'counts': pa.list_(pa.uint32()),
    }
)
# Rows that are held before they are written.
_ROWS = 8192


class Encoded(NamedTuple):
    """The labels of an image as they are written."""

    name: str  #: of the image
    areas: list[tuple]  #: rows of the table of areas
    png: bytes | None  #: the label image, ...
    masks: list[tuple]  #: ... or the rows of the table of masks
    shares: np.ndarray  #: (2, C) share of every class by the host and with TPA


def encode(result: Segmentation, form: str) -> Encoded:
    """Encodes labels, which needs no model: other threads may do it. Args: form: one of :data:`FORMS`."""
    name, (height, width) = result.name, result.labels.shape
    areas = [(name, *area) for area in result.areas if area.pixels or area.host_pixels]
    png, masks = None, []
    if form == 'png':
        file = io.BytesIO()
        result.label_image().save(file, format='PNG')
        png = file.getvalue()
    else:
        masks = [(name, height, width, *mask) for mask in run_lengths(result.labels)]
    shares = np.array([(area.host_share, area.share) for area in result.areas]).T
    return Encoded(name, areas, png, masks, shares)


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


def mask_of(row: Any) -> np.ndarray:
    """Returns the (H, W) bool mask of a row of ``masks.parquet``."""
    flat = np.repeat(np.arange(len(row['counts'])) % 2 == 1, row['counts'])
    return flat.reshape(row['height'], row['width'], order='F')


class ShardWriter:
    """Writes the files of a shard, which appear when all images are there. Use it in a ``with`` statement.

    Args:
        folder: The folder of the shard.
        form: Of the labels, one of :data:`FORMS`.
        num_classes: Number of classes C.

    Attributes:
        images: Number of images that were added.
        shares: (2, C) sums of the shares of every class, by the host and with TPA.
    """

    def __init__(self, folder: Path, form: str, num_classes: int) -> None:
        self.folder, self.form = folder, form
        self.images, self.shares = 0, np.zeros((2, num_classes))

    def __enter__(self) -> ShardWriter:
        for left in self.folder.glob('.*.tmp'):
            left.unlink()  # of a process that was killed
        with ExitStack() as stack:
            self._areas = stack.enter_context(_Table(stack.enter_context(self._file(AREAS)), _AREA_SCHEMA))
            labels = stack.enter_context(self._file(FORMS[self.form]))
            opened = tarfile.open(fileobj=labels, mode='w') if self.form == 'png' else _Table(labels, _MASK_SCHEMA)
            self._labels = stack.enter_context(opened)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)

    def add(self, encoded: Encoded) -> None:
        """Writes the labels of an image."""
        self.images += 1
        self.shares += encoded.shares
        self._areas.add(encoded.areas)
        if encoded.png is None:
            self._labels.add(encoded.masks)
        else:
            member = tarfile.TarInfo(f'{encoded.name}.png')
            member.size = len(encoded.png)
            self._labels.addfile(member, io.BytesIO(encoded.png))
            # tarfile would keep every member of a tar of any length.
            self._labels.members.clear()

    def _file(self, name: str):
        return atomic_write(self.folder / name)


class _Table:
    """A Parquet file that is written a few thousand rows at a time."""

    def __init__(self, file: IO, schema: pa.Schema) -> None:
        self._schema, self._rows = schema, []
        self._writer = pq.ParquetWriter(file, schema, compression='zstd')

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is None:
            self._flush()
        self._writer.close()

    def add(self, rows: Sequence[tuple]) -> None:
        self._rows += rows
        if len(self._rows) >= _ROWS:
            self._flush()

    def _flush(self) -> None:
        columns = zip(*self._rows, strict=True) if self._rows else [[] for _ in self._schema]
        arrays = [pa.array(list(cells), kind) for cells, kind in zip(columns, self._schema.types, strict=True)]
        self._writer.write_table(pa.table(arrays, self._schema))
        self._rows = []


def join_tables(parts: Sequence[Path], out: Path) -> None:
    """Writes the rows of Parquet files of one schema into one file, a row group at a time."""
    with atomic_write(out) as file, pq.ParquetWriter(file, _AREA_SCHEMA, compression='zstd') as writer:
        for part in parts:
            table = pq.ParquetFile(part)
            for group in range(table.num_row_groups):
                writer.write_table(table.read_row_group(group).cast(_AREA_SCHEMA))
