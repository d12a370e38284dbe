"""The algebra of bilinear resizing, in bands of rows. Its adjoint is in adjoint.py, the norm it leaves in norm.py.

Resizing is linear, so no feature map ever has to exist at full size. ``F.interpolate(mode='bilinear')`` is the
definition; everything here computes the same numbers in bands of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from .row_mix import RowMix
from .settings import positive_bytes
from .taps import axis_taps, band_taps, host_taps

#: Environment variable: bytes of one (C, rows, W) band of float32 on a GPU. Few large bands keep it busy.
BAND_BYTES = 'TPA_BAND_BYTES'
_DEFAULT_BAND_BYTES = 128 << 20
# Elements of a band where it should stay in the cache, and the most rows that do.
_BAND_ELEMENTS = {'cpu': 3 << 19}
_MOST_ROWS = 64
# glibc gives freed memory back beyond twice the largest block that was ever freed. Bands are more than that, and to get
# their memory again takes longer than to compute them: free a large block first, one that nothing was written to.
torch.empty(31 << 20, dtype=torch.uint8, device='cpu')


def band_elements(device: torch.device) -> int:
    """Elements of a (C, rows, W) band on a device: what a CPU's cache or a GPU's memory budget holds."""
    if device.type in _BAND_ELEMENTS:
        return _BAND_ELEMENTS[device.type]
    return positive_bytes(BAND_BYTES, _DEFAULT_BAND_BYTES) // 4


def band_ranges(channels: int, size: tuple[int, int], device: torch.device) -> Iterator[tuple[int, int]]:
    """Cuts the rows of a (channels, H, W) map into bands: (top, bottom) pairs."""
    height, width = size
    rows = max(1, band_elements(device) // max(1, channels * width))
    if device.type in _BAND_ELEMENTS:
        rows = min(_MOST_ROWS, rows)
    for top in range(0, height, rows):
        yield top, min(height, top + rows)


class RowSource(Protocol):
    """A (C, H, W) map that can be asked for any band of its rows."""

    @property
    def shape(self) -> tuple[int, int, int]: ...

    @property
    def device(self) -> torch.device: ...

    def rows(self, top: int, bottom: int) -> Tensor:
        """Rows ``top`` to ``bottom`` as float32 (C, bottom - top, W); the caller may not write to them."""

    @property
    def nbytes(self) -> int:
        """Bytes that the map and everything behind it hold."""

    def release(self) -> None:
        """Free what can be computed again without a network."""

    @property
    def most_channels(self) -> int | None:
        """How many channels may be read within the memory that the map may take; None for any number."""

    def channels(self, first: int, last: int) -> RowSource | None:
        """The map of the channels ``first`` to ``last``; None for a map whose channels depend on each other."""


class Grid:
    """A map that is in memory, of any float type. Args: values (C, h, w)."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    @property
    def shape(self) -> tuple[int, int, int]:
        channels, height, width = self.values.shape
        return channels, height, width

    @property
    def device(self) -> torch.device:
        return self.values.device

    def rows(self, top: int, bottom: int) -> Tensor:
        return self.values[:, top:bottom].float()

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    def release(self) -> None:
        pass

    @property
    def most_channels(self) -> None:
        return None

    def channels(self, first: int, last: int) -> Grid:
        return Grid(self.values[first:last])

    def row_mix(self) -> RowMix:
        return RowMix.plain(self.values.float())


class Resized:
    """Another map seen through a bilinear resize, which is carried out only for the rows asked for.

    Resizes can be chained, as hosts do that go from patches to the network's input and on to the original image.

    Args:
        source: The map to resize, a (C, h, w) tensor or any other :class:`RowSource`.
        size: Target height and width.
        align_corners: As in ``F.interpolate``.
    """

    def __init__(self, source: Tensor | RowSource, size: tuple[int, int], align_corners: bool = False) -> None:
        self.source = Grid(source) if isinstance(source, Tensor) else source
        self.size = (int(size[0]), int(size[1]))
        self.align_corners = align_corners
        self._wide: dict[int, Tensor] = {}
        self._part: tuple[tuple[int, int], Resized | None] = ((0, 0), None)

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self.source.shape[0], *self.size)

    @property
    def device(self) -> torch.device:
        return self.source.device

    @property
    def nbytes(self) -> int:
        return self.source.nbytes

    def release(self) -> None:
        self._wide, self._part = {}, ((0, 0), None)
        self.source.release()

    @property
    def most_channels(self) -> int | None:
        # A source that others wrote may do without these two.
        return getattr(self.source, 'most_channels', None)

    def channels(self, first: int, last: int) -> Resized | None:
        if (first, last) == (0, self.shape[0]):
            return self
        kept, part = self._part
        if kept != (first, last):
            source = self.source.channels(first, last) if hasattr(self.source, 'channels') else None
            part = None if source is None else Resized(source, self.size, self.align_corners)
            self._part = (first, last), part  # with its wide rows, for the next band
        return part

    def row_mix(self) -> RowMix | None:
        """The map for a kernel; None where its rows are mixed more than once, or by more than bilinear weights."""
        inner = self.source.row_mix() if hasattr(self.source, 'row_mix') else None
        if inner is None or tuple(self.source.shape[1:]) == self.size:
            return inner
        if inner.index.shape[1] > 1:
            return None
        values = self._resize_columns(inner.values.detach()).contiguous()
        if inner.index.shape[0] == self.size[0]:
            return RowMix.plain(values)
        return RowMix.resized(values, self.size[0], self.align_corners)

    def rows(self, top: int, bottom: int) -> Tensor:
        height = self.source.shape[1]
        if height == self.size[0]:
            return self._resize_columns(self.source.rows(top, bottom).detach())
        if self.device.type != 'cpu':
            return self._rows_in_few_steps(top, bottom)
        taps = host_taps(height, self.size[0], self.align_corners)
        first, last = int(taps.low[top]), int(taps.high[bottom - 1]) + 1
        # Rows and columns are resized apart, in the order that leaves fewer rows to the columns. It does not depend on
        # the band, so that a row has the same bits in every band.
        if height < self.size[0]:
            return self._resize_rows(self._wide_rows(first, last), top, bottom)
        block = self.source.rows(first, last).detach()
        return self._resize_columns(self._resize_rows(dict(enumerate(block.unbind(1), first)), top, bottom))

    def _wide_rows(self, first: int, last: int) -> dict[int, Tensor]:
        """The source's rows ``first`` to ``last`` with resized columns, (C, W) each. The band before has made some."""
        wide = {row: made for row, made in self._wide.items() if first <= row < last}
        start = next((row for row in range(first, last) if row not in wide), last)
        if start < last:
            made = self._resize_columns(self.source.rows(start, last).detach())
            wide.update(enumerate(made.unbind(1), start))
        self._wide = wide if last < self.source.shape[1] else {}
        return wide

    def _resize_columns(self, block: Tensor) -> Tensor:
        """(C, rows, w) -> (C, rows, W)."""
        if block.shape[2] == self.size[1]:
            return block
        if block.device.type != 'cpu':
            # PyTorch's linear kernel has a thread per column, its bilinear one a thread per pixel.
            return self._resize(block, (block.shape[1], self.size[1]))
        return F.interpolate(block, self.size[1], mode='linear', align_corners=self.align_corners)

    def _resize(self, block: Tensor, size: tuple[int, int]) -> Tensor:
        """(C, h, w) -> (C, *size) in one step."""
        return F.interpolate(block[None], size, mode='bilinear', align_corners=self.align_corners)[0]

    def _rows_in_few_steps(self, top: int, bottom: int) -> Tensor:
        """The same rows where starting an operation costs more than the memory that it moves: on a GPU."""
        height = self.source.shape[1]
        if (top, bottom) == (0, self.size[0]):
            return self._resize(self.source.rows(0, height).detach(), self.size)
        on_host = host_taps(height, self.size[0], self.align_corners)
        block = self.source.rows(int(on_host.low[top]), int(on_host.high[bottom - 1]) + 1).detach()
        taps = band_taps(height, self.size[0], self.align_corners, top, bottom, str(block.device))
        mixed = torch.lerp(block.index_select(1, taps.low), block.index_select(1, taps.high), taps.weight)
        return self._resize_columns(mixed)

    def _resize_rows(self, rows: dict[int, Tensor], top: int, bottom: int) -> Tensor:
        """The source's rows, (C, width) each -> (C, bottom - top, width)."""
        source, target = self.source.shape[1], self.size[0]
        low = host_taps(source, target, self.align_corners).low[top:bottom].tolist()
        any_row = rows[low[0]]
        weight = axis_taps(source, target, self.align_corners, str(any_row.device)).weight[top:bottom, None]
        out = any_row.new_empty(any_row.shape[0], bottom - top, any_row.shape[1])
        # All target rows between the same two source rows at once: the two are broadcast, nothing is gathered.
        start = 0
        for row, run in groupby(low):
            stop = start + len(list(run))
            above, below = rows[row][:, None], rows[min(row + 1, source - 1)][:, None]
            torch.lerp(above, below, weight[start:stop], out=out[:, start:stop])
            start = stop
        return out
