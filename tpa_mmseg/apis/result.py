"""What a Segmenter found: labels with and without TPA, and all that follows from them without the networks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from ..core import FusedScores, Fusion, Lookup, PrototypeBank, ScoreMap, anchor_map
from ..errors import TPAError
from ..visualization.panels import resample
from . import render as pictures
from .inputs import Skipped
from .picture import Picture
from .saving import OutputFolder

if TYPE_CHECKING:
    from .segmenter import Segmenter


# Labels come with eight bytes per pixel: those of the host and of TPA are made one after the other beyond this.
_MOST_PIXELS_TWICE = 16_000_000


class Outputs(NamedTuple):
    """What the networks say about a picture: all that anchors, lookup and fusion need."""

    scores: ScoreMap  #: the host's class probabilities
    phi: Tensor | None  #: (D, h, w) features of the encoder, None without TPA
    size: tuple[int, int]  #: height and width of the picture; those of the scores may be less


@dataclass(frozen=True)
class Area:
    """How much of a picture a class covers, with TPA and by the host alone; shares are between 0 and 1."""

    name: str
    pixels: int
    share: float
    host_pixels: int
    host_share: float


@dataclass(frozen=True)
class Coverage:
    """What a bank knows of a class. Args: name: the class; anchors: how many; covered: whether it has a prototype."""

    name: str
    anchors: int
    covered: bool


class Result:
    """The labels of one picture.

    Args:
        segmenter: Whose networks looked at it.
        picture: The picture.
        bank: The bank to look up in, None for the host alone.
        fusion: Weights of the fusion.
        host_labels: (H, W) labels of the host, where they are known.

    Attributes:
        labels: (H, W) index into :attr:`class_names`, the smallest type of integers that holds them all.
        host_labels: The same by the host alone.
    """

    def __init__(
        self,
        segmenter: Segmenter,
        picture: Picture,
        bank: PrototypeBank | None,
        fusion: Fusion,
        host_labels: np.ndarray | None = None,
    ) -> None:
        self._segmenter, self.picture, self.bank, self.fusion = segmenter, picture, bank, fusion
        outputs = segmenter.outputs(picture)
        self._size = outputs.size
        scores = self._fused(outputs)
        if not isinstance(scores, FusedScores):
            self.host_labels = self.labels = self._compact(scores.labels())
        elif host_labels is not None:
            self.host_labels, self.labels = host_labels, self._compact(scores.labels())
        elif scores.size[0] * scores.size[1] <= _MOST_PIXELS_TWICE:
            self.host_labels, self.labels = map(self._compact, (scores.host.labels(), scores.labels()))
        else:
            self.host_labels = self._compact(scores.host.labels())
            self.labels = self._compact(scores.labels())

    @torch.no_grad()
    def _fused(self, outputs: Outputs) -> ScoreMap:
        """TPA's scores, or the host's where there is nothing to look up in."""
        if self.bank is None:
            return outputs.scores
        lookup = Lookup(self.bank.prototypes(), outputs.phi, outputs.scores.size, self.fusion.center)
        return FusedScores(outputs.scores, lookup, self.fusion)

    def _compact(self, labels: Tensor) -> np.ndarray:
        labels = labels.cpu().numpy().astype(np.min_scalar_type(len(self.class_names) - 1))
        return self._full_size(labels)

    def _full_size(self, labels: np.ndarray) -> np.ndarray:
        return labels if labels.shape == self._size else resample(labels, self._size)

    @property
    def name(self) -> str:
        """The picture's name."""
        return self.picture.name

    @property
    def class_names(self) -> tuple[str, ...]:
        return self._segmenter.class_names

    @property
    def palette(self) -> list[list[int]]:
        """RGB of each class."""
        return self._segmenter.palette

    @property
    def about(self) -> str:
        """One line about the networks in use."""
        return self._segmenter.about

    def fuse(self, alpha: float | None = None, lambda_: float | None = None, k: float | None = None) -> Result:
        """The same picture with other settings; what is None stays. Only the fusion (for ``k`` the bank) is redone."""
        fusion = fusion_with(self.fusion, alpha, lambda_)
        bank = self.bank
        if k is not None and bank is not None and k != bank.rule.k:
            bank = self._segmenter.bank_for(k)
        return Result(self._segmenter, self.picture, bank, fusion, self.host_labels)

    def scores(self) -> np.ndarray:
        """(C, H, W) float32 probabilities with TPA. They take 4 C H W bytes.

        Hosts that refine masks (NACLIP, Trident) decide on at most two megapixels; so do their scores.
        """
        return self._fused(self._segmenter.outputs(self.picture)).probabilities().cpu().numpy()

    def host_scores(self) -> np.ndarray:
        """(C, H, W) float32 probabilities of the host alone."""
        return self._segmenter.outputs(self.picture).scores.probabilities().cpu().numpy()

    def anchors(self) -> np.ndarray:
        """(H, W) int32 class of every pixel that the bank learns from in this picture, -1 elsewhere."""
        if self.bank is None:
            raise TPAError('There are no anchors without TPA: leave tpa=False out.')
        rule = self.bank.rule
        labels = anchor_map(self._segmenter.outputs(self.picture).scores, rule).int().cpu().numpy()
        counts = pictures.class_counts(labels, len(self.class_names))
        few = np.append(counts < rule.k_min, False)  # the last one is that of -1
        labels[few[labels]] = -1
        return self._full_size(labels)

    def areas(self) -> list[Area]:
        """The area of every class, in the order of the classes."""
        pixels, host = (pictures.class_counts(each, len(self.class_names)) for each in (self.labels, self.host_labels))
        total = self.labels.size
        return [
            Area(name, int(own), int(own) / total, int(of_host), int(of_host) / total)
            for name, own, of_host in zip(self.class_names, pixels, host, strict=True)
        ]

    def changed(self) -> float:
        """Share of the pixels to which TPA gave another class."""
        return float(np.count_nonzero(self.labels != self.host_labels)) / self.labels.size

    def coverage(self) -> list[Coverage]:
        """What the bank knows of every class."""
        return [] if self.bank is None else coverage(self.bank, self.class_names)

    def as_dict(self) -> dict:
        """Size, areas and settings in the types of JSON."""
        height, width = self.labels.shape
        settings = {} if self.bank is None else settings_of(self.fusion, self.bank)
        areas = [asdict(area) for area in self.areas()]
        return {'image': self.name, 'width': width, 'height': height, 'changed': self.changed(), **settings} | {
            'areas': areas
        }

    def overlay(self, host: bool = False) -> Image.Image:
        """The classes painted over the picture. Args: host: those of the host alone."""
        return pictures.overlay(self.picture, self.host_labels if host else self.labels, self.palette)

    def legend_overlay(self) -> Image.Image:
        """The overlay with a legend that gives the share of each class."""
        return pictures.legend_overlay(self)

    def comparison(self) -> Image.Image:
        """The picture, the host, TPA and what TPA changed, side by side."""
        return pictures.compare(self)

    def anchor_picture(self) -> Image.Image:
        """The picture beside its anchors."""
        return pictures.show_anchors(self)

    def label_image(self) -> Image.Image:
        """The labels as a picture with a palette; as 16-bit gray where there are more than 256 classes."""
        return pictures.label_image(self.labels, self.palette)

    def save(self, folder: str | os.PathLike) -> None:
        """Writes ``overlays/``, ``labels/``, ``comparisons/`` and ``areas.json``."""
        Results([self]).save(folder)

    def show(self) -> None:
        """Opens the comparison in a viewer."""
        self.comparison().show(title=self.name)

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        return self.comparison()._repr_png_()


class Results(Sequence[Result]):
    """The results of several pictures.

    Args:
        results: One for each picture.
        skipped: What was left out.
    """

    def __init__(self, results: Iterable[Result], skipped: Sequence[Skipped] = ()) -> None:
        self._results = list(results)
        self.skipped = skipped

    def __len__(self) -> int:
        return len(self._results)

    def __getitem__(self, index: int | slice) -> Result | Results:
        if isinstance(index, slice):
            return Results(self._results[index], self.skipped)
        return self._results[index]

    def fuse(self, alpha: float | None = None, lambda_: float | None = None, k: float | None = None) -> Results:
        """All pictures with other settings, see :meth:`Result.fuse`."""
        return Results((result.fuse(alpha, lambda_, k) for result in self), self.skipped)

    def save(self, folder: str | os.PathLike) -> None:
        """Writes ``overlays/``, ``labels/``, ``comparisons/`` and ``areas.json``."""
        out = OutputFolder(folder, [result.picture for result in self])
        for result in self:
            out.add(result)
        out.finish(self.skipped)

    def show(self) -> None:
        """Opens the comparison of every picture in a viewer."""
        for result in self:
            result.show()


def coverage(bank: PrototypeBank, class_names: Sequence[str]) -> list[Coverage]:
    """What a bank knows of every class."""
    columns = zip(class_names, bank.counts.tolist(), bank.covered.tolist(), strict=True)
    return [Coverage(*column) for column in columns]


def fusion_with(fusion: Fusion, alpha: float | None = None, lambda_: float | None = None) -> Fusion:
    """A fusion with other weights; what is None stays."""
    given = {'alpha': alpha, 'lambda_': lambda_}
    try:
        return replace(fusion, **{name: value for name, value in given.items() if value is not None})
    except ValueError as error:
        raise TPAError(f'{error}.') from error


def settings_of(fusion: Fusion, bank: PrototypeBank) -> dict:
    """What the labels were made with."""
    return {'alpha': fusion.alpha, 'lambda': fusion.lambda_, 'k': bank.rule.k, 'bank_images': bank.images}
