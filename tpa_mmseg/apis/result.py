"""Segmentation results: labels with and without TPA, as plain data, and everything derived from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np
from PIL import Image

from ..errors import printable
from . import render
from .images import ImageSource, Skipped
from .saving import OutputFolder


class ClassArea(NamedTuple):
    """Area of a class in an image, with TPA and by the host alone; shares are between 0 and 1."""

    name: str
    pixels: int
    share: float
    host_pixels: int
    host_share: float


class ClassCoverage(NamedTuple):
    """A class in the bank. Args: name: The class; anchors: Their number; covered: Whether it has a prototype."""

    name: str
    anchors: int
    covered: bool


@dataclass(frozen=True)
class TPASettings:
    """The settings that labels were made with.

    Args:
        alpha: Share of the host in the fusion.
        lambda_: Weight of the cosines beside log-probabilities.
        k: Anchors are pixels whose class is more than ``k`` times as probable as by chance.
        bank_images: Number of images in the bank.
    """

    alpha: float
    lambda_: float
    k: float
    bank_images: int


@dataclass(frozen=True, eq=False, repr=False)
class Segmentation:
    """The labels of one image.

    Args:
        image: The image.
        classes: Name of each class.
        palette: RGB of each class.
        labels: (H, W) index into :attr:`classes`, of the smallest integer type that holds them all.
        host_labels: The same by the host alone.
        settings: Settings of TPA; None for the host alone.
        coverage: The classes in the bank; empty for the host alone.
        description: The model, in a few words.
    """

    image: ImageSource
    classes: tuple[str, ...]
    palette: list[list[int]]
    labels: np.ndarray
    host_labels: np.ndarray
    settings: TPASettings | None = None
    coverage: tuple[ClassCoverage, ...] = ()
    description: str = ''

    def __repr__(self) -> str:
        height, width = self.labels.shape
        found = sorted((area for area in self.areas if area.pixels), key=lambda area: -area.pixels)
        shares = name_some([f'{area.name} {100 * area.share:.1f} %' for area in found])
        return one_line(f'Segmentation({self.name}, {width} x {height}: {shares}; {_change(self)})')

    @property
    def name(self) -> str:
        """Name of the image."""
        return self.image.name

    @property
    def adapted(self) -> bool:
        """Whether the labels are those of TPA."""
        return self.settings is not None

    @cached_property
    def areas(self) -> list[ClassArea]:
        """Area of every class, in the order of the classes."""
        pixels, host = (
            render.class_counts(labels, len(self.classes)).tolist() for labels in (self.labels, self.host_labels)
        )
        total = self.labels.size
        return [
            ClassArea(name, own, own / total, of_host, of_host / total)
            for name, own, of_host in zip(self.classes, pixels, host, strict=True)
        ]

    @cached_property
    def changed_fraction(self) -> float:
        """Fraction of the pixels to which TPA gave another class."""
        return float(np.count_nonzero(self.labels != self.host_labels)) / self.labels.size

    def as_dict(self) -> dict:
        """Return size, settings and areas in the types of JSON."""
        height, width = self.labels.shape
        settings = {} if self.settings is None else asdict(self.settings)
        return {
            'image': self.name,
            'width': width,
            'height': height,
            'changed': self.changed_fraction,
            **{name.rstrip('_'): value for name, value in settings.items()},
            'areas': [area._asdict() for area in self.areas],
        }

    def overlay(self, host: bool = False) -> Image.Image:
        """Paint the classes over the image. Args: host: Those of the host alone."""
        return render.overlay(self.image, self.host_labels if host else self.labels, self.palette)

    def legend_overlay(self) -> Image.Image:
        """Draw the overlay above a legend with the share of each class."""
        return render.legend_overlay(self)

    def comparison(self) -> Image.Image:
        """Draw the image, the host, TPA and what TPA changed side by side."""
        return render.compare(self)

    def label_image(self) -> Image.Image:
        """Return the labels as an image with a palette; as 16-bit gray if there are more than 256 classes."""
        return render.label_image(self.labels, self.palette)

    def save(self, folder: str | os.PathLike) -> None:
        """Write ``overlays/``, ``labels/``, ``comparisons/`` and ``areas.json``."""
        Segmentations([self]).save(folder)

    def show(self) -> None:
        """Open the comparison in a viewer."""
        self.comparison().show(title=self.name)

    def _repr_png_(self) -> bytes | None:
        """Return the comparison for notebooks."""
        return self.comparison()._repr_png_()


class Segmentations(Sequence[Segmentation]):
    """The segmentations of several images.

    Args:
        results: One for each image.
        skipped: Files that were left out.
    """

    def __init__(self, results: Iterable[Segmentation], skipped: Sequence[Skipped] = ()) -> None:
        self._results = list(results)
        self.skipped = skipped

    def __repr__(self) -> str:
        skipped = f', {len(self.skipped)} skipped' if self.skipped else ''
        changes = name_some([f'{result.name}: {_change(result)}' for result in self], 3)
        return one_line(f'Segmentations({len(self)} images{skipped}; {changes})')

    def __len__(self) -> int:
        return len(self._results)

    @overload
    def __getitem__(self, index: int) -> Segmentation: ...

    @overload
    def __getitem__(self, index: slice) -> Segmentations: ...

    def __getitem__(self, index: int | slice) -> Segmentation | Segmentations:
        if isinstance(index, slice):
            return Segmentations(self._results[index], self.skipped)
        return self._results[index]

    def save(self, folder: str | os.PathLike) -> None:
        """Write ``overlays/``, ``labels/``, ``comparisons/`` and ``areas.json``."""
        out = OutputFolder(folder, [result.image for result in self])
        for result in self:
            out.add(result)
        out.finish(self.skipped)

    def show(self) -> None:
        """Open the comparison of every image in a viewer."""
        for result in self:
            result.show()


def one_line(text: str) -> str:
    """Return a text without line breaks, and with nothing that steers a terminal."""
    return printable(' '.join(text.split()))


def name_some(texts: Sequence[str], most: int = 8) -> str:
    """Return the first texts on one line, and the number of the others."""
    return ', '.join([*texts[:most], *([f'{len(texts) - most} more'] if len(texts) > most else ())])


def _change(result: Segmentation) -> str:
    return f'TPA changed {100 * result.changed_fraction:.1f} %' if result.adapted else 'without TPA'
