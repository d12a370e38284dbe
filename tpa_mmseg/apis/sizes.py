"""What keeps huge pictures within memory."""

from __future__ import annotations

from mmseg.structures import SegDataSample

from ..datasets import SafeResize

# Hosts that refine masks hold all their scores at the size of the picture: 8 MB per class for so many pixels.
_MOST_REFINED_PIXELS = 2_000_000


class ShrinkLarge:
    """A pipeline step that shrinks what is larger than a size and leaves the rest as it is.

    Args:
        largest: Long and short side.
    """

    def __init__(self, largest: tuple[int, int]) -> None:
        self.largest = largest
        self._resize = SafeResize(scale=largest, keep_ratio=True)

    def __call__(self, results: dict) -> dict:
        long, short = self.largest
        height, width = results['img'].shape[:2]
        fits = max(height, width) <= long and min(height, width) <= short
        return results if fits else self._resize(results)


def limit_scores(sample: SegDataSample) -> None:
    """Makes a host that refines masks do so at a size that memory has room for."""
    height, width = sample.ori_shape
    factor = (_MOST_REFINED_PIXELS / (height * width)) ** 0.5
    if factor < 1:
        size = tuple(max(1, round(side * factor)) for side in (height, width))
        # SAM would look for the file and find that it has another size.
        sample.set_metainfo({'ori_shape': size, 'img_path': None})
