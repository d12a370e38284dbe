"""Folders of the datasets below the data root, and values of the labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..catalog import load
from ..errors import TPAError

IGNORED = 255


@dataclass(frozen=True)
class Layout:
    """A dataset on disk.

    Args:
        name: Its key in the catalog.
        folder: Its folder below the data root.
        images: Path of an image in that folder, with ``{split}`` and ``{stem}``.
        labels: The same for its label.
        values: The pixels of a label are 0 to ``values`` - 1.
        ignored: Whether they may also be 255, which is not scored. ADE20K uses 0 for that (``reduce_zero_label``).
        archives: The official archives, for ``--source`` of ``tools/prepare.py``.
        list: Path of the list of images, with ``{split}``; None if all images of the folder belong to the split.
        splits: The dataset's own names of the splits.
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
        """Its full name."""
        return load().datasets[self.name].title

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmarks that read it, as configs name them."""
        return tuple(name for name, entry in load().benchmarks.items() if entry.dataset == self.name)

    @property
    def counts(self) -> Mapping[int, str]:
        """Number of test images -> name of their list (empty if there is only one)."""
        return load().datasets[self.name].counts

    def image(self, split: str, stem: str) -> str:
        """Returns the path of an image below the folder."""
        return self.images.format(split=self.splits[split], stem=stem)

    def label(self, split: str, stem: str) -> str:
        """Returns the path of a label below the folder."""
        return self.labels.format(split=self.splits[split], stem=stem)

    def list_file(self, split: str) -> str:
        """Returns the path of the list of a split below the folder."""
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


def dataset_of(name: str) -> str:
    """Returns the key in :data:`LAYOUTS` of a dataset or of one of its benchmarks."""
    for dataset, layout in LAYOUTS.items():
        if name == dataset or name in layout.benchmarks:
            return dataset
    known = dict.fromkeys(name for dataset, layout in LAYOUTS.items() for name in (dataset, *layout.benchmarks))
    raise TPAError(f'Unknown dataset {name!r}. Choose from: {", ".join(known)}.')
