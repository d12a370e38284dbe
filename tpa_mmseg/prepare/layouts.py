"""Where the files of each dataset lie below the data root, how many there are, and what a label may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

IGNORED = 255


@dataclass(frozen=True)
class Layout:
    """One dataset on the disk.

    Args:
        title: Its name for people.
        folder: Its folder below the data root.
        images: Path of an image in that folder, with ``{split}`` and ``{stem}``.
        labels: The same for its label.
        counts: How many images the test has -> which list that is (empty where there is only one).
        values: The pixels of a label are 0 to ``values`` - 1.
        ignored: Whether they may also be 255, which is not scored. ADE20K keeps 0 for that (``reduce_zero_label``).
        archives: What to give to ``tools/prepare.py`` as ``--source``.
        list: Path of the list of images, with ``{split}``; None where the folder itself is the list.
        splits: What the dataset calls the splits.
    """

    title: str
    folder: str
    images: str
    labels: str
    counts: Mapping[int, str]
    values: int
    ignored: bool
    archives: str
    list: str | None = None
    splits: Mapping[str, str] = field(default_factory=lambda: {'val': 'val', 'train': 'train'})

    def image(self, split: str, stem: str) -> str:
        """Path of an image below the folder."""
        return self.images.format(split=self.splits[split], stem=stem)

    def label(self, split: str, stem: str) -> str:
        """Path of a label below the folder."""
        return self.labels.format(split=self.splits[split], stem=stem)

    def list_file(self, split: str) -> str:
        """Path of the list of a split below the folder."""
        return self.list.format(split=self.splits[split])


LAYOUTS = {
    'voc': Layout(
        title='Pascal VOC 2012',
        folder='VOCdevkit/VOC2012',
        images='JPEGImages/{stem}.jpg',
        labels='SegmentationClass/{stem}.png',
        list='ImageSets/Segmentation/{split}.txt',
        counts={1449: ''},
        values=21,
        ignored=True,
        archives='VOCtrainval_11-May-2012.tar',
    ),
    'context': Layout(
        title='Pascal Context',
        folder='VOCdevkit/VOC2010',
        images='JPEGImages/{stem}.jpg',
        labels='SegmentationClassContext/{stem}.png',
        list='ImageSets/SegmentationContext/{split}.txt',
        counts={5104: 'the list of trainval_merged.json', 5105: 'the list of VOC 2010'},
        values=60,
        ignored=False,
        archives='VOCtrainval_03-May-2010.tar trainval_merged.json',
    ),
    'coco_stuff': Layout(
        title='COCO-Stuff 164k',
        folder='coco_stuff164k',
        images='images/{split}2017/{stem}.jpg',
        labels='annotations/{split}2017/{stem}_labelTrainIds.png',
        counts={5000: ''},
        values=171,
        ignored=True,
        archives='val2017.zip stuffthingmaps_trainval2017.zip',
    ),
    'coco_object': Layout(
        title='COCO-Object',
        folder='coco_object',
        images='images/{split}2017/{stem}.jpg',
        labels='annotations/{split}2017/{stem}_instanceTrainIds.png',
        counts={5000: ''},
        values=81,
        ignored=False,
        archives='val2017.zip stuffthingmaps_trainval2017.zip',
    ),
    'cityscapes': Layout(
        title='Cityscapes',
        folder='cityscapes',
        images='leftImg8bit/{split}/{stem}_leftImg8bit.png',
        labels='gtFine/{split}/{stem}_gtFine_labelTrainIds.png',
        counts={500: ''},
        values=19,
        ignored=True,
        archives='leftImg8bit_trainvaltest.zip gtFine_trainvaltest.zip',
    ),
    'ade20k': Layout(
        title='ADE20K',
        folder='ade/ADEChallengeData2016',
        images='images/{split}/{stem}.jpg',
        labels='annotations/{split}/{stem}.png',
        splits={'val': 'validation', 'train': 'training'},
        counts={2000: ''},
        values=151,
        ignored=False,
        archives='ADEChallengeData2016.zip',
    ),
}
