"""Pixel-adaptive mask refinement: scores flow between pixels of similar color."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ..core import Resized, RowSource
from ..core.bilinear import band_ranges

# Floats of the channels that are refined together, and rows whose affinities are computed together: memory stays small.
_CHUNK_ELEMENTS = {'cpu': 1 << 20, 'cuda': 1 << 24}
_BAND_ROWS = 32


class RefinedMap:
    """Scores refined at the original size, as a :class:`~tpa_mmseg.core.RowSource`.

    Refinement needs the scores of the whole image at full size. It is done when rows are first read and forgotten by
    :meth:`release`, so that an image that waits for its turn costs only its small maps and its input.

    Args:
        source: Scores to refine, a (Q, h, w) tensor or any other RowSource.
        image: (3, h, w) network input, which guides the refinement.
        size: Height and width of the original image.
        steps, dilations: See :func:`refine_`.
    """

    def __init__(
        self,
        source: Tensor | RowSource,
        image: Tensor,
        size: tuple[int, int],
        steps: int,
        dilations: Sequence[int],
    ) -> None:
        self.source, self.image = Resized(source, size), image
        self.steps, self.dilations = steps, tuple(dilations)
        self._refined: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.source.shape

    @property
    def device(self) -> torch.device:
        return self.source.device

    @property
    def nbytes(self) -> int:
        return self.source.nbytes + self.image.nbytes + (0 if self._refined is None else self._refined.nbytes)

    def release(self) -> None:
        self._refined = None
        self.source.release()

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
            guide = F.interpolate(self.image[None].float(), self.source.size, mode='bilinear')[0]
            return refine_(scores, guide, self.steps, self.dilations)


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
    weights = affinities(image.float(), dilations)
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
