"""segment: pictures and words in, labels out."""

from __future__ import annotations

import os

from ..clip.names import Classes
from .inputs import Images
from .result import Result, Results
from .segmenter import Segmenter


def segment(
    images: Images,
    classes: Classes,
    *,
    pool: Images | None = None,
    bank: str | os.PathLike | None = None,
    **options,
) -> Result | Results:
    """Segments pictures with classes of one's own. For many calls, keep a :class:`Segmenter` instead.

    Args:
        images: Paths, folders, Pillow images, RGB arrays (H, W, 3), tensors (3, H, W), batches, or lists of them.
        classes: Such as ``['cat', 'sofa', 'tv; television; monitor']`` or ``'cat, sofa, tv; television'``.
        pool: Pictures without labels that TPA adapts to; by default ``images`` themselves.
        bank: File of a saved bank; ``pool``, where given, is folded in.
        **options: ``host``, ``backbone``, ``tpa``, ``background``, ... as for :class:`Segmenter`.

    Returns:
        A :class:`Result` for a single picture, :class:`Results` for a list, a batch or a folder.
    """
    model = Segmenter(classes, bank=bank, **options)
    if pool is not None:
        model.adapt(pool)
    return model.segment(images)
