"""segment: images and class names in, labels out."""

from __future__ import annotations

import os
from typing import Any

from ..clip.names import Classes
from ..datasets.pool import DEFAULT_SIZE
from .images import Images
from .result import Segmentation, Segmentations
from .segmenter import Segmenter


def segment(
    images: Images,
    classes: Classes,
    *,
    pool: Images | None = None,
    pool_size: int | None = DEFAULT_SIZE,
    bank: str | os.PathLike | None = None,
    **options: Any,
) -> Segmentation | Segmentations:
    """Segment images with user-defined classes. For several calls, keep a :class:`Segmenter` instead.

    Args:
        images: Paths, folders, Pillow images, RGB arrays (H, W, 3), tensors (3, H, W), batches, or lists of them.
        classes: Class names, e.g. ``['cat', 'sofa', 'tv; television; monitor']`` or ``'cat, sofa, tv; television'``.
        pool: Unlabeled images that TPA adapts to. Default: ``images`` themselves.
        pool_size: Most images of the pool to use, drawn with a fixed seed; None for all.
        bank: File of a saved bank. If there is a ``pool``, it is added.
        **options: ``host``, ``backbone``, ``tpa``, ``background``, ... as for :class:`Segmenter`.

    Returns:
        A :class:`Segmentation` for a single image, :class:`Segmentations` for a list, a batch or a folder.
    """
    segmenter = Segmenter(classes, bank=bank, pool_size=pool_size, **options)
    if pool is not None:
        segmenter.adapt(pool, pool_size)
    return segmenter.segment(images)
