"""Datasets of open-vocabulary benchmarks that MMSegmentation does not have.

VOC21, COCO-Stuff164k, Cityscapes and ADE20K are MMSegmentation's ``PascalVOCDataset``, ``COCOStuffDataset``,
``CityscapesDataset`` and ``ADE20KDataset``.
"""

from __future__ import annotations

from mmseg.datasets import (
    BaseSegDataset,
    COCOStuffDataset,
    PascalContextDataset,
    PascalContextDataset59,
    PascalVOCDataset,
)
from mmseg.registry import DATASETS

_COCO_OBJECTS = 80


def voc_colors(count: int) -> list[list[int]]:
    """Returns the first colors of Pascal VOC's palette: the bits of an index go to red, green and blue in turn."""
    colors = []
    for index in range(count):
        color = [0, 0, 0]
        for bit in range(24):
            color[bit % 3] |= (index >> bit & 1) << 7 - bit // 3
        colors.append(color)
    return colors


@DATASETS.register_module()
class PascalVOC20Dataset(PascalVOCDataset):
    """Pascal VOC 2012 without the background, which is ignored. Same files as ``PascalVOCDataset``."""

    METAINFO = {key: values[1:] for key, values in PascalVOCDataset.METAINFO.items()}

    def __init__(self, ann_file: str, reduce_zero_label: bool = True, **kwargs) -> None:
        super().__init__(ann_file=ann_file, reduce_zero_label=reduce_zero_label, **kwargs)


@DATASETS.register_module()
class PascalContext60Dataset(PascalContextDataset):
    """Pascal Context: 59 classes and a background, which is class 0."""


@DATASETS.register_module()
class PascalContext59Dataset(PascalContextDataset59):
    """Pascal Context without the background, which is ignored."""


@DATASETS.register_module()
class COCOObjectDataset(BaseSegDataset):
    """The 80 object classes of COCO in their order; everything else is background, which is class 0."""

    METAINFO = {
        'classes': ('background', *COCOStuffDataset.METAINFO['classes'][:_COCO_OBJECTS]),
        'palette': voc_colors(1 + _COCO_OBJECTS),
    }

    def __init__(self, img_suffix: str = '.jpg', seg_map_suffix: str = '_instanceTrainIds.png', **kwargs) -> None:
        super().__init__(img_suffix=img_suffix, seg_map_suffix=seg_map_suffix, **kwargs)
