"""MiniatureDataset: scenes of the miniature world as a dataset of MMSegmentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS

from ..errors import TPAError
from ..options import AtLeastOne, Choice
from .files import PREFIX, file_name, folder
from .splits import SPLITS, split_of
from .textures import GROUNDS, THINGS
from .world import CLASSES, PALETTE

DEFAULT_SIZE = 300
BACKGROUND = 'background'
_BACKGROUND_COLOR = (150, 150, 150)
_PARTS = {'img_path': 'images', 'seg_map_path': 'labels'}


@DATASETS.register_module()
class MiniatureDataset(BaseSegDataset):
    """Scenes that are painted when they are read, or files that ``tools/miniature.py export`` wrote: the same pixels.

    Args:
        split: ``'train'``, ``'val'`` or ``'test'``.
        size: The first so many scenes of the split. By default 300, or all that were exported.
        background: Make the six grounds one class, the background, which is class 0; the eight things follow.
        resolution: Height and width of all scenes; by default each has its own.
        data_root: Folder that was exported; None to paint.
        **kwargs: As for ``BaseSegDataset``.
    """

    METAINFO = {'classes': CLASSES, 'palette': [list(color) for color in PALETTE]}
    WITH_BACKGROUND = {
        'classes': (BACKGROUND, *THINGS),
        'palette': [list(color) for color in (_BACKGROUND_COLOR, *PALETTE[len(GROUNDS) :])],
    }

    def __init__(
        self,
        split: Annotated[str, Choice(SPLITS)] = 'test',
        size: AtLeastOne | None = None,
        background: bool = False,
        resolution: Sequence[AtLeastOne] | None = None,
        data_root: str | None = None,
        data_prefix: dict | None = None,
        metainfo: dict | None = None,
        img_suffix: str = '.png',
        **kwargs,
    ) -> None:
        most = split_of(split).most
        if size is not None and not 1 <= size <= most:
            raise TPAError(f'MiniatureDataset.size must be between 1 and {most}, not {size}.')
        self.size = size
        self.painted = data_root is None
        resolution = None if resolution is None else tuple(resolution)
        places = {part: folder(kind, split, resolution) for part, kind in _PARTS.items()}
        super().__init__(
            data_root=f'{PREFIX}://' if self.painted else data_root,
            data_prefix=data_prefix or places,
            metainfo=metainfo or (self.WITH_BACKGROUND if background else None),
            img_suffix=img_suffix,
            **kwargs,
        )

    @classmethod
    def get_label_map(cls, new_classes: Sequence[str] | None = None) -> dict[int, int] | None:
        """New label of each label in the files: as in MMSegmentation, or all grounds to the background."""
        if tuple(new_classes or ()) != cls.WITH_BACKGROUND['classes']:
            return super().get_label_map(new_classes)
        return {label: max(0, label - len(GROUNDS) + 1) for label in range(len(CLASSES))}

    def load_data_list(self) -> list[dict]:
        """What is known of each scene before it is read."""
        if not self.painted:
            return self._exported()
        return [self._painted(file_name(index)) for index in range(self.size or DEFAULT_SIZE)]

    def _painted(self, name: str) -> dict:
        paths = {part: f'{place}/{name}' for part, place in self.data_prefix.items()}
        return {**paths, 'label_map': self.label_map, 'reduce_zero_label': self.reduce_zero_label, 'seg_fields': []}

    def _exported(self) -> list[dict]:
        images = Path(self.data_prefix['img_path'])
        if not images.is_dir():
            raise TPAError(
                f'No scenes in {images}. Write them with tools/miniature.py export, or leave data_root out '
                'to have them painted.'
            )
        found = super().load_data_list()
        if self.size is not None and len(found) < self.size:
            raise TPAError(
                f'{images} has {len(found)} scenes, not the {self.size} of MiniatureDataset.size: export more, or ask '
                'for fewer.'
            )
        return found[: self.size]
