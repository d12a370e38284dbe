"""What options of OpenMMLab's classes may be where their own annotations are missing or too wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from .rules import Positive, Range

OPENMMLAB = ('mmengine.', 'mmcv.', 'mmseg.')
#: Name of an option -> its annotation. These names mean the same in every class.
STATED: dict[str, Any] = {
    'img_suffix': str,
    'seg_map_suffix': str,
    'reduce_zero_label': bool | None,
    'max_refetch': Annotated[int, Range(0)],
    'interpolation': Literal['nearest', 'bilinear', 'bicubic', 'area', 'lanczos'] | None,
    'imdecode_backend': Literal['cv2', 'turbojpeg', 'pillow', 'tifffile'] | None,
    'scale_factor': Positive | Sequence[Positive] | None,
    'backend_args': dict | None,
    'meta_keys': Sequence[str],
}
