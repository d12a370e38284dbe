"""What a shard writes: label images in a tar or run-length masks in Parquet, and a table of areas."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from ..apis import Segmentation
from ..io import atomic_write

#: Form of the labels -> name of their file.
FORMS = {'png': 'labels.tar', 'rle': 'masks.parquet'}
AREAS = 'areas.parquet'
_AREA = {'image': 'string', 'class': 'string', 'pixels': 'int64', 'share': 'float64'}
_AREA_SCHEMA = pa.schema(_AREA | {'host_pixels': 'int64', 'host_share': 'float64'})
_MASK = {'image': 'string', 'height': 'int32', 'width': 'int32', 'label': 'int32', 'counts': pa.list_(pa.uint32())}
_MASK_SCHEMA = pa.schema(_MASK)
# Rows that are held before they are written.
_ROWS = 8192


def encode(result: Segmentation, form: str) -> bytes | list[dict]:
    """Returns the labels of an image as a PNG, or as rows of the table of masks. Needs no model: threads may do it."""
    if form == 'rle':
        rows = ((result.name, *result.labels.shape, *mask) for mask in run_lengths(result.labels))
        return [dict(zip(_MASK, row, strict=True)) for row in rows]
    result.label_image().save(file := io.BytesIO(), format='PNG')
    return file.getvalue()


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


@contextmanager
def shard_files(folder: Path, form: str) -> Iterator[Callable[[Segmentation, bytes | list[dict]], None]]:
    """Opens the files of a shard, which appear when all images are there. Yields what adds an image to them.

    Args:
        folder: The folder of the shard.
        form: Of the labels, one of :data:`FORMS`.
    """
    for left in folder.glob('.*.tmp'):
        left.unlink()  # of a process that was killed
    with (
        atomic_write(folder / AREAS) as file,
        _Table(file, _AREA_SCHEMA) as areas,
        atomic_write(folder / FORMS[form]) as file,
        tarfile.open(fileobj=file, mode='w') if form == 'png' else _Table(file, _MASK_SCHEMA) as labels,
    ):

        def add(result: Segmentation, encoded: bytes | list[dict]) -> None:
            found = [area for area in result.areas if area.pixels or area.host_pixels]
            areas.add([{'image': result.name, 'class': area.name, **area._asdict()} for area in found])
            if isinstance(encoded, list):
                labels.add(encoded)
                return
            member = tarfile.TarInfo(f'{result.name}.png')
            member.size = len(encoded)
            labels.addfile(member, io.BytesIO(encoded))
            # tarfile would keep every member of a tar of any length.
            labels.members.clear()

        yield add


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
