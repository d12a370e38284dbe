"""Reads the images of a shard one after the other. What cannot be read is left out and named, and never an error."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from ..apis.images import ImageSource
from ..datasets.pool import IMAGE_SUFFIXES
from ..errors import TPAError
from .source import Part, clean

#: Most bytes of an encoded image.
LARGEST = 256 << 20
# Most bytes of a header of a tar, which is read as a whole.
_LARGEST_HEADER = 1 << 20
_HEADERS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)

#: Called with the name of an image or a file that is left out, and the reason.
Skip = Callable[[str, str], None]


#: The name of an image, its bytes (None for an empty cell), and a function that returns its content or its path.
_Entry = tuple[str, int | None, Callable[[], 'bytes | str']]


def read_pictures(parts: Iterable[Part], skip: Skip, column: str | None = None) -> Iterator[ImageSource]:
    """Yields the images of a shard, not decoded yet. Holds one of them.

    Args:
        parts: The files of the shard.
        skip: Called for what is left out.
        column: Column of a Parquet file that has the images. Default: the only one that has bytes.
    """
    readers = {'image': _from_file, 'tar': _from_tar, 'parquet': partial(_from_parquet, column=column)}
    for part in parts:
        stop = None if part.limit is None else part.first + part.limit * part.step
        try:
            for name, size, read in islice(readers[part.kind](part), part.first, stop, part.step):
                if size is None or size > LARGEST:
                    skip(name, 'empty' if size is None else f'{size:,} bytes, more than {LARGEST:,}')
                else:
                    yield ImageSource(name, read())
        except TPAError:
            raise
        # Every file system of fsspec has its own exceptions, as do the libraries that unpack.
        except Exception as error:
            skip(part.name, f'{type(error).__name__}: {error}')


def _from_file(part: Part) -> Iterator[_Entry]:
    if '://' not in part.address:
        yield part.name, os.path.getsize(part.address), lambda: part.address
        return
    with fsspec.open(part.address, 'rb') as file:
        data = file.read(LARGEST + 1)
    yield part.name, len(data), lambda: data


def _from_tar(part: Part) -> Iterator[_Entry]:
    with fsspec.open(part.address, 'rb') as file, tarfile.open(fileobj=file, mode='r|*', tarinfo=_Member) as tar:
        for member in tar:
            # It would keep every member of a tar of any length.
            tar.members.clear()
            if member.isfile() and member.name.endswith(IMAGE_SUFFIXES):
                yield f'{part.name}/{clean(member.name)}', member.size, tar.extractfile(member).read


class _Member(tarfile.TarInfo):
    """A member of a tar. tarfile would take a damaged header for the end, and read one of any size into memory."""

    @classmethod
    def frombuf(cls, buf: bytes, encoding: str, errors: str) -> _Member:
        try:
            member = super().frombuf(buf, encoding, errors)
        except (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError) as error:
            raise tarfile.ReadError(f'damaged ({error})') from error
        if member.type in _HEADERS and member.size > _LARGEST_HEADER:
            raise tarfile.ReadError(f'a header of {member.size} bytes')
        return member


def _from_parquet(part: Part, column: str | None) -> Iterator[_Entry]:
    with fsspec.open(part.address, 'rb') as file:
        table = pq.ParquetFile(file, buffer_size=1 << 20)
        column = _image_column(table.schema_arrow, column, part.address)
        batches = table.iter_batches(batch_size=16, columns=[column])
        for row, cell in enumerate(chain.from_iterable(batch.column(0) for batch in batches)):
            data = cell['bytes'] if pa.types.is_struct(cell.type) else cell
            yield f'{part.name}/{row:08d}', data.as_buffer().size if data.is_valid else None, data.as_py


def _image_column(schema: pa.Schema, given: str | None, address: str) -> str:
    """Returns the given column, or the only one of bytes or of Hugging Face's structs with bytes."""
    columns = [field.name for field in schema if 'binary' in str(field.type)]
    if given in columns or (given is None and len(columns) == 1):
        return given or columns[0]
    raise TPAError(
        f'Cannot tell which column of {address} has the images: pass --image-column with one that contains bytes. '
        f'Its columns: {", ".join(schema.names)}.'
    )
