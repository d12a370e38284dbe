"""Sliding windows: cut, run in batches, and stitch their low-resolution maps.

Upsampling windows, summing them, dividing by how many cover a pixel and resizing to the original image are all linear
and act on rows and columns apart. So the whole way from the windows' patches to a pixel of the original image is one
matrix per axis, and nothing of full size exists until a band of rows is requested.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from mmseg.structures import SegDataSample
from torch import Tensor

from ..core.row_mix import RowMix
from ..core.tables import kept_per_band, kept_per_shape, to_device
from ..core.taps import host_taps
from ..errors import TPAError


@dataclass(frozen=True)
class Span:
    """A window along one axis: its pixels, and the zeros around them in the network's input."""

    start: int
    stop: int
    before: int = 0
    after: int = 0

    @property
    def padded(self) -> int:
        return self.before + self.stop - self.start + self.after


@dataclass(frozen=True)
class Sliding:
    """The rule that cuts an image into windows, which is MMSegmentation's.

    Args:
        crop: Side of a window; 0 takes the whole image.
        stride: Step from window to window. The last one is pulled back to the border.
        pad_to: Zero-pads a window, centered, to a multiple of this side; 1 for no padding. Whole images are never
            padded.
    """

    crop: int
    stride: int
    pad_to: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.crop, int) or self.crop < 0:
            raise TPAError(f'slide_crop must be a positive number of pixels, or 0 for whole images, not {self.crop!r}.')
        if not isinstance(self.stride, int):
            raise TPAError(f'slide_stride must be a whole number of pixels, not {self.stride!r}.')
        if self.crop and not 0 < self.stride <= self.crop:
            raise TPAError(
                f'slide_stride must be between 1 and slide_crop = {self.crop}, not {self.stride}: '
                'otherwise no window contains the pixels between windows.'
            )

    @property
    def whole(self) -> bool:
        return self.crop == 0

    def spans(self, side: int) -> tuple[Span, ...]:
        """Returns the windows along an axis of ``side`` pixels."""
        if self.whole:
            return (Span(0, side),)
        count = max(side - self.crop + self.stride - 1, 0) // self.stride + 1
        stops = (min(i * self.stride + self.crop, side) for i in range(count))
        return tuple(self._pad(max(stop - self.crop, 0), stop) for stop in stops)

    def _pad(self, start: int, stop: int) -> Span:
        missing = -(stop - start) % self.pad_to
        return Span(start, stop, missing // 2, missing - missing // 2)

    def cut(self, image: Tensor) -> list[Tensor]:
        """Cuts a (3, H, W) image into (3, h, w) windows, row by row; views of it unless they are padded."""
        windows = []
        for y in self.spans(image.shape[1]):
            for x in self.spans(image.shape[2]):
                window = image[:, y.start : y.stop, x.start : x.stop]
                margins = (x.before, x.after, y.before, y.after)
                windows.append(F.pad(window, margins) if any(margins) else window)
        return windows


class Cut(NamedTuple):
    """An image and its windows."""

    image: Tensor  #: (3, H, W) network input, without the padding of a data preprocessor
    sample: SegDataSample | None  #: its sample
    windows: list[Tensor]  #: (3, h, w) each


def run_batched(network: Callable[[Tensor], Tensor], images: Sequence[Tensor], batch: int) -> list[Tensor]:
    """Runs a network on images of any sizes, in batches of images of one size.

    Args:
        network: (B, 3, h, w) -> (B, ...), every image independent of the others.
        images: (3, h, w) each.
        batch: Largest batch.

    Returns:
        The output for each image, in order.
    """
    by_size: dict[tuple, list[int]] = {}
    for index, image in enumerate(images):
        by_size.setdefault(tuple(image.shape), []).append(index)
    outputs: list[Tensor] = [None] * len(images)
    for indices in by_size.values():
        for chunk in (indices[i : i + batch] for i in range(0, len(indices), batch)):
            for index, output in zip(chunk, network(torch.stack([images[i] for i in chunk])), strict=True):
                outputs[index] = output
    return outputs


def run_on_windows(
    network: Callable[[Tensor], Tensor], windows: Sequence[Sequence[Tensor]], batch: int
) -> list[list[Tensor]]:
    """Runs a network on the windows of several images. Args: as for :func:`run_batched`; windows: of each image."""
    outputs = iter(run_batched(network, [window for of_image in windows for window in of_image], batch))
    return [[next(outputs) for _ in of_image] for of_image in windows]


def stack_equal(maps: Sequence[Tensor]) -> list[Tensor]:
    """Maps of one shape as one batch, so that they take one operation instead of one each; else batches of one."""
    if all(one.shape == maps[0].shape for one in maps):
        return [torch.stack(tuple(maps))]
    return [one[None] for one in maps]


class StitchedWindows:
    """Map of an image, stitched from its windows and resized, as a :class:`~tpa_mmseg.core.RowSource`.

    Args:
        maps: (Q, h, w) low-resolution map of each window, in the order of :meth:`Sliding.cut`.
        sliding: How the windows were cut.
        network: Height and width of the image that was cut.
        size: Height and width of the rows' map.
        nonfinite: Whether there may be NaN or infinity. A matrix product would spread them over the whole image, so
            they are taken out and put back where they belong.
    """

    def __init__(
        self,
        maps: Sequence[Tensor],
        sliding: Sliding,
        network: tuple[int, int],
        size: tuple[int, int],
        nonfinite: bool = True,
    ) -> None:
        down, across = (sliding.spans(side) for side in network)
        blocks, heights, widths = join_windows(maps, len(across))
        self._blocks, self._broken = _without_nonfinite(blocks) if nonfinite else (blocks, None)
        self._size = size
        self._down = (down, heights, network[0], size[0])
        self._across = (across, widths, network[1], size[1])

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self._blocks.shape[0], *self._size)

    @property
    def device(self) -> torch.device:
        return self._blocks.device

    @property
    def nbytes(self) -> int:
        # The matrices belong to a cache that all images of one size share.
        return self._blocks.nbytes + (0 if self._broken is None else self._broken.nbytes)

    def release(self) -> None:
        pass

    @property
    def most_channels(self) -> None:
        return None

    def channels(self, first: int, last: int) -> StitchedWindows:
        part = copy.copy(self)
        part._blocks = self._blocks[first:last]
        return part

    def row_mix(self) -> RowMix | None:
        """The map for a kernel; None where there may be NaN."""
        if self._broken is not None:
            return None
        with torch.autocast(self.device.type, enabled=False):
            values = self._blocks @ _axis_on(self._across, str(self.device))
        return RowMix(values, *_mixed_rows(self._down, str(self.device)))

    def rows(self, top: int, bottom: int) -> Tensor:
        """Rows ``top`` to ``bottom`` as float32 (Q, bottom - top, W)."""
        rows = self._apply(self._blocks, top, bottom)
        if self._broken is not None:
            rows.masked_fill_(self._apply(self._broken, top, bottom) > 0, float('nan'))
        return rows

    def _apply(self, blocks: Tensor, top: int, bottom: int) -> Tensor:
        down, used = _band_on(self._down, top, bottom, str(self.device))
        across = _axis_on(self._across, str(self.device))
        if used is not None:
            blocks = blocks.index_select(1, used)
        # Bands are computed long after the network ran, perhaps under an autocast that is not meant for them.
        with torch.autocast(self.device.type, enabled=False):
            # The product that makes a map larger comes last, whatever the band, so that a row has the same bits in
            # every band.
            if self._blocks.shape[1] < self._size[0]:
                return down @ (blocks @ across)
            return (down @ blocks) @ across


def join_windows(maps: Sequence[Tensor], columns: int) -> tuple[Tensor, tuple[int, ...], tuple[int, ...]]:
    """The (Q, h, w) maps of windows side by side, ``columns`` in a row, and their heights and widths."""
    heights, widths = tuple(m.shape[1] for m in maps[::columns]), tuple(m.shape[2] for m in maps[:columns])
    batch, *others = stack_equal([m.float() for m in maps])
    if not others:
        tiles = batch.unflatten(0, (-1, columns)).permute(2, 0, 3, 1, 4)
        return tiles.reshape(batch.shape[1], sum(heights), sum(widths)), heights, widths
    strips = [maps[i : i + columns] for i in range(0, len(maps), columns)]
    return torch.cat([torch.cat([m.float() for m in strip], 2) for strip in strips], 1), heights, widths


def _without_nonfinite(blocks: Tensor) -> tuple[Tensor, Tensor | None]:
    """Finite (Q, h, w) blocks, and a (1, h, w) float map that is one where some were not; None if all were."""
    # A sum is finite if every term is. (So are sums of finite cosines, far from overflow.)
    total = blocks.sum(0, keepdim=True)
    broken = ~(total.abs() < float('inf'))
    if blocks.device.type == 'cpu' and not broken.any():
        return blocks, None
    return blocks.masked_fill(broken, 0), broken.float()


@kept_per_shape(64)
def _axis_matrix(spans: tuple[Span, ...], patches: tuple[int, ...], side: int, target: int) -> np.ndarray:
    """(sum of ``patches``, ``target``) matrix from the patches of all windows along an axis to its target pixels.

    Args:
        spans: The windows.
        patches: Number of patches of each.
        side: Pixels of the axis that was cut.
        target: Pixels of the resized axis.
    """
    stitched, visits = np.zeros((sum(patches), side)), np.zeros(side)
    first = 0
    for span, count in zip(spans, patches, strict=True):
        window = _resize_matrix(count, span.padded)[:, span.before : span.padded - span.after]
        stitched[first : first + count, span.start : span.stop] += window
        visits[span.start : span.stop] += 1
        first += count
    matrix = stitched / visits
    return (matrix if side == target else matrix @ _resize_matrix(side, target)).astype(np.float32)


def _resize_matrix(source: int, target: int) -> np.ndarray:
    """(source, target) float64 matrix of a bilinear resize."""
    taps, column = host_taps(source, target), np.arange(target)
    matrix = np.zeros((source, target))
    matrix[taps.low, column] += 1 - taps.weight.astype(np.float64)
    matrix[taps.high, column] += taps.weight.astype(np.float64)
    return matrix


Axis = tuple[tuple[Span, ...], tuple[int, ...], int, int]


@kept_per_shape(64)
def _axis_on(axis: Axis, device: str) -> Tensor:
    """The matrix of an axis on a device."""
    return to_device(_axis_matrix(*axis), device)


@kept_per_band
def _band_on(axis: Axis, top: int, bottom: int, device: str) -> tuple[Tensor, Tensor | None]:
    """(bottom - top, n) weights of the n patch rows that a band needs, and their (n,) numbers, None for all."""
    band = _axis_matrix(*axis)[:, top:bottom]
    # Rows far from the band have no weight in it: leave them out of the product.
    used = band.any(1).nonzero()[0]
    return to_device(band[used].T, device), None if len(used) == len(band) else to_device(used, device)


@kept_per_shape(64)
def _mixed_rows(axis: Axis, device: str) -> tuple[Tensor, Tensor]:
    """(H, K) int32 patch rows that each pixel row mixes, and their float32 weights; K of the row that mixes most."""
    matrix = _axis_matrix(*axis)
    most = int((matrix != 0).sum(0).max())
    # Rows with a weight come first; what is left over repeats the first one with weight zero.
    index = np.argsort(matrix == 0, axis=0, kind='stable')[:most]
    weight = np.take_along_axis(matrix, index, 0)
    index = np.where(weight == 0, index[:1], index)
    return to_device(index.T.astype(np.int32), device), to_device(weight.T, device)


def as_map(tokens: Tensor, grid: tuple[int, int]) -> Tensor:
    """(B, h w, E) patch tokens -> (B, E, h, w)."""
    return tokens.transpose(1, 2).unflatten(2, grid)
