"""Features of an image from those of its windows, at the centers of its own patch grid."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..core.tables import kept_per_shape, to_device
from .windows import Sliding, Span, join_windows


def image_features(maps: Sequence[Tensor], sliding: Sliding, size: tuple[int, int]) -> Tensor:
    """Averages the features of overlapping windows.

    Where windows are aligned with the patches, this is the mean of the patches in one place. Elsewhere (the last window
    is pulled back to the border) a window is read bilinearly between its patches.

    Args:
        maps: (D, h, w) features of each window, in the order of :meth:`Sliding.cut`.
        sliding: How the windows were cut.
        size: Height and width of the image that was cut.

    Returns:
        (D, h', w') float32 features; those of a single window as they are.
    """
    down, across = (sliding.spans(side) for side in size)
    if len(maps) == 1 and not any((down[0].before, down[0].after, across[0].before, across[0].after)):
        return maps[0].float()
    blocks, heights, widths = join_windows(maps, len(across))
    rows, columns = (
        _sampling_on(spans, patches, side, str(blocks.device))
        for spans, patches, side in ((down, heights, size[0]), (across, widths, size[1]))
    )
    with torch.autocast(blocks.device.type, enabled=False):
        return rows @ (blocks @ columns.T)


@kept_per_shape(64)
def _sampling_on(spans: tuple[Span, ...], patches: tuple[int, ...], side: int, device: str) -> Tensor:
    """(n, sum of ``patches``) weights of the patches of all windows along an axis in each of the image's n patches.

    Args:
        spans: The windows.
        patches: Number of patches of each.
        side: Pixels of the axis.
        device: Where the weights are needed.
    """
    count = max(1, round(side * patches[0] / spans[0].padded))
    center = (np.arange(count) + 0.5) * side / count
    weights, visits, target, first = np.zeros((count, sum(patches))), np.zeros(count), np.arange(count), 0
    for span, number in zip(spans, patches, strict=True):
        inside = ((span.start <= center) & (center < span.stop)).astype(float)
        place = (center - span.start + span.before) * number / span.padded - 0.5
        place = place.clip(0, number - 1)
        low = place.astype(int)
        high = np.minimum(low + 1, number - 1)
        weights[target, first + low] += inside * (1 - (place - low))
        weights[target, first + high] += inside * (place - low)
        visits += inside
        first += number
    return to_device((weights / visits[:, None]).astype(np.float32), device)
