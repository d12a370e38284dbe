"""Folders of the datasets below the data root, and values of the labels. The catalog has them as data."""

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


LAYOUTS = {name: Layout(name, **entry.layout) for name, entry in load().datasets.items() if entry.layout}


def dataset_of(name: str) -> str:
    """Returns the key in :data:`LAYOUTS` of a dataset or of one of its benchmarks."""
    for dataset, layout in LAYOUTS.items():
        if name == dataset or name in layout.benchmarks:
            return dataset
    known = dict.fromkeys(name for dataset, layout in LAYOUTS.items() for name in (dataset, *layout.benchmarks))
    raise TPAError(f'Unknown dataset {name!r}. Choose from: {", ".join(known)}.')
