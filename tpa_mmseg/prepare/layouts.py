"""Where the files of each dataset are below the data root, and which values a label may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..catalog import load

IGNORED = 255


@dataclass(frozen=True)
class Layout:
    """One dataset on the disk.

    Args:
        name: Its key in the catalog.
        folder: Its folder below the data root.
        images: Path of an image in that folder, with ``{split}`` and ``{stem}``.
        labels: The same for its label.
        values: The pixels of a label are 0 to ``values`` - 1.
        ignored: Whether they may also be 255, which is not scored. ADE20K keeps 0 for that (``reduce_zero_label``).
        archives: What to give to ``tools/prepare.py`` as ``--source``.
        list: Path of the list of images, with ``{split}``; None where the folder itself is the list.
        splits: What the dataset calls the splits.
    """

    name: str
    folder: str
    images: str
    labels: str
    values: int
    ignored: bool
    archives: str
    list: str | None = None
    splits: Mapping[str, str] = field(default_factory=lambda: {'val': 'val', 'train': 'train'})

    @property
    def title(self) -> str:
        """Its name for people."""
        return load().datasets[self.name].title

    @property
    def counts(self) -> Mapping[int, str]:
        """How many images the test has -> which list that is (empty if there is only one)."""
        return load().datasets[self.name].counts

    def image(self, split: str, stem: str) -> str:
        """Path of an image below the folder."""
        return self.images.format(split=self.splits[split], stem=stem)

    def label(self, split: str, stem: str) -> str:
        """Path of a label below the folder."""
        return self.labels.format(split=self.splits[split], stem=stem)

    def list_file(self, split: str) -> str:
        """Path of the list of a split below the folder."""
        return self.list.format(split=self.splits[split])


_LAYOUTS = (
    Layout(
        'voc',
        folder='VOCdevkit/VOC2012',
        images='JPEGImages/{stem}.jpg',
        labels='SegmentationClass/{stem}.png',
        list='ImageSets/Segmentation/{split}.txt',
        values=21,
        ignored=True,
        archives='VOCtrainval_11-May-2012.tar',
    ),
    Layout(
        'context',
        folder='VOCdevkit/VOC2010',
        images='JPEGImages/{stem}.jpg',
        labels='SegmentationClassContext/{stem}.png',
        list='ImageSets/SegmentationContext/{split}.txt',
        values=60,
        ignored=False,
        archives='VOCtrainval_03-May-2010.tar trainval_merged.json',
    ),
    Layout(
        'coco_stuff',
        folder='coco_stuff164k',
        images='images/{split}2017/{stem}.jpg',
        labels='annotations/{split}2017/{stem}_labelTrainIds.png',
        values=171,
        ignored=True,
        archives='val2017.zip stuffthingmaps_trainval2017.zip',
    ),
    Layout(
        'coco_object',
        folder='coco_object',
        images='images/{split}2017/{stem}.jpg',
        labels='annotations/{split}2017/{stem}_instanceTrainIds.png',
        values=81,
        ignored=False,
        archives='val2017.zip stuffthingmaps_trainval2017.zip',
    ),
    Layout(
        'cityscapes',
        folder='cityscapes',
        images='leftImg8bit/{split}/{stem}_leftImg8bit.png',
        labels='gtFine/{split}/{stem}_gtFine_labelTrainIds.png',
        values=19,
        ignored=True,
        archives='leftImg8bit_trainvaltest.zip gtFine_trainvaltest.zip',
    ),
    Layout(
        'ade20k',
        folder='ade/ADEChallengeData2016',
        images='images/{split}/{stem}.jpg',
        labels='annotations/{split}/{stem}.png',
        splits={'val': 'validation', 'train': 'training'},
        values=151,
        ignored=False,
        archives='ADEChallengeData2016.zip',
    ),
)
LAYOUTS = {layout.name: layout for layout in _LAYOUTS}
