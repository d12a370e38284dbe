"""Pixel-adaptive mask refinement: scores flow between pixels of similar color."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ..core import Resized, RowSource
from ..core.bilinear import band_ranges
from ..core.row_mix import RowMix

# Floats of the channels that are refined together, and rows whose affinities are computed together: memory stays small.
_CHUNK_ELEMENTS = {'cpu': 1 << 20, 'cuda': 1 << 24}
_BAND_ROWS = 32


#: Bytes of refined scores that exist at a time unless a host says otherwise.
REFINED_BYTES = 512 << 20


class RefinedMap:
    """Scores refined at the original size, as a :class:`~tpa_mmseg.core.RowSource`.

    Refinement needs the scores of the whole image at full size. It is done when rows are first read and forgotten by
    :meth:`release`, so that an image that waits for its turn costs only its small maps and its input.

    Args:
        source: Scores to refine, a (Q, h, w) tensor or any other RowSource.
        image: (3, h, w) network input, which guides the refinement.
        size: Height and width of the original image.
        steps, dilations: See :func:`refine_`.
        most_bytes: Of the refined scores that exist at a time. Channels are refined independently, so that more of
            them are refined a part at a time, and again for every pass over the scores.
    """

    def __init__(
        self,
        source: Tensor | RowSource,
        image: Tensor,
        size: tuple[int, int],
        steps: int,
        dilations: Sequence[int],
        most_bytes: int = REFINED_BYTES,
    ) -> None:
        self.source, self.image = Resized(source, size), image
        self.steps, self.dilations = steps, tuple(dilations)
        self.most_channels = max(1, most_bytes // (4 * size[0] * size[1]))
        self._refined: Tensor | None = None
        self._whole: RefinedMap | None = None  # what this is a part of; all parts share its affinities
        self._affinities: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.source.shape

    @property
    def device(self) -> torch.device:
        return self.source.device

    @property
    def nbytes(self) -> int:
        held = (self._refined, self._affinities)
        return self.source.nbytes + self.image.nbytes + sum(part.nbytes for part in held if part is not None)

    def release(self) -> None:
        self._refined = self._affinities = None
        self.source.release()

    def channels(self, first: int, last: int) -> RefinedMap | None:
        source = self.source.channels(first, last)
        if source is None:
            return None
        part = copy.copy(self)
        part.source, part._refined, part._whole, part._affinities = source, None, self, None
        return part

    def row_mix(self) -> RowMix:
        """The map for a kernel."""
        return RowMix.plain(self.rows(0, self.shape[1]))

    def rows(self, top: int, bottom: int) -> Tensor:
        if self._refined is None:
            self._refined = self._refine()
        return self._refined[:, top:bottom]

    @torch.no_grad()
    def _refine(self) -> Tensor:
        """(Q, H, W) refined scores."""
        # Rows may be read under an autocast that is not meant for them.
        with torch.autocast(self.device.type, enabled=False):
            scores = torch.empty(self.shape, device=self.device)
            for top, bottom in band_ranges(self.shape[0], self.source.size, self.device):
                scores[:, top:bottom] = self.source.rows(top, bottom)
            return _flow_(scores, self._weights(), self.steps, self.dilations)

    def _weights(self) -> Tensor:
        whole = self._whole
        if whole is None:
            guide = F.interpolate(self.image[None].float(), self.source.size, mode='bilinear')[0]
            return affinities(guide, self.dilations)
        if whole._affinities is None:
            whole._affinities = whole._weights()
        return whole._affinities


def refine_(scores: Tensor, image: Tensor, steps: int, dilations: Sequence[int]) -> Tensor:
    """Refines scores in place, a few channels at a time.

    Args:
        scores: (Q, H, W) float32 scores, changed in place.
        image: (3, H, W) image that guides the refinement, normalized as the network's input.
        steps: Number of times that scores flow to their neighbors.
        dilations: Distances of the eight neighbors.

    Returns:
        The scores.
    """
    return _flow_(scores, affinities(image.float(), dilations), steps, dilations)


def _flow_(scores: Tensor, weights: Tensor, steps: int, dilations: Sequence[int]) -> Tensor:
    """Lets scores flow to their neighbors. Args: as for :func:`refine_`; weights: from :func:`affinities`."""
    channels = max(1, _CHUNK_ELEMENTS.get(scores.device.type, 1 << 24) // scores[0].numel())
    for first in range(0, len(scores), channels):
        chunk = scores[first : first + channels]
        for _ in range(steps):
            padded = _pad(chunk, dilations)
            chunk.zero_()
            for weight, shifted in zip(weights, _neighbors(padded, dilations, chunk.shape[-2:]), strict=True):
                chunk.addcmul_(shifted, weight)
    return scores


def affinities(image: Tensor, dilations: Sequence[int]) -> Tensor:
    """Weights of each pixel's neighbors: (8 * len(dilations), H, W), summing to one over neighbors.

    The nearer a neighbor's color, measured in a tenth of the local standard deviation, the larger its weight.
    """
    height, width = image.shape[-2:]
    padded = _pad(image, dilations)
    out = image.new_empty(8 * len(dilations), height, width)
    for top in range(0, height, _BAND_ROWS):
        bottom = min(top + _BAND_ROWS, height)
        center = image[:, top:bottom]
        around = padded[:, top : bottom + 2 * max(dilations)]
        neighbors = torch.stack(list(_neighbors(around, dilations, center.shape[-2:])))
        # The center counts once per dilation. In flat regions the deviation is rounding noise, which the affinities
        # amplify: it is computed from the samples themselves, in float32, as in the original.
        deviation = torch.cat((neighbors, center.expand(len(dilations), -1, -1, -1))).std(0)
        distance = neighbors.sub_(center).abs_().div_(1e-8 + 0.1 * deviation).mean(1)
        out[:, top:bottom] = distance.neg_().softmax(0)
    return out


def _pad(maps: Tensor, dilations: Sequence[int]) -> Tensor:
    """(C, H, W) -> (C, H + 2 m, W + 2 m) with the border repeated m times, m the largest dilation."""
    return F.pad(maps, [max(dilations)] * 4, mode='replicate')


def _neighbors(padded: Tensor, dilations: Sequence[int], size: tuple[int, int]) -> Iterator[Tensor]:
    """Views of a padded (C, H + 2 m, W + 2 m) map, m the largest dilation, shifted to each of its neighbors."""
    margin, (height, width) = max(dilations), size
    for dilation in dilations:
        for down in (-dilation, 0, dilation):
            for right in (-dilation, 0, dilation):
                if down or right:
                    top, left = margin + down, margin + right
                    yield padded[:, top : top + height, left : left + width]
