"""Segmenter: loaded networks and a bank that grows; pictures in, results out."""

from __future__ import annotations

import copy
import os
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import torch
from mmengine.config import Config
from mmengine.logging import print_log

from ..clip.names import Classes
from ..console import track
from ..core import Fusion, PrototypeBank
from ..errors import TPAError
from ..evaluation import describe_bank
from .adaptation import Adaptation
from .choice import AUTO, Wish
from .inputs import Collected, Images, collect, lazily
from .networks import Networks, load_networks
from .picture import Picture, Unreadable
from .result import Outputs, Result, Results, fusion_with
from .sizes import limit_scores

T = TypeVar('T')


class SkippedWarning(UserWarning):
    """A picture was left out."""


class Segmenter:
    """Segments pictures with classes of one's own. The networks are loaded once.

    Args:
        classes: A list with one entry per class (``;`` separates synonyms); a string, e.g.
            ``'cat, dog, tv; television'``; a file with one class per line; None for the classes of a config.
        host: Name of a host (:func:`~tpa_mmseg.apis.host_names`); or a config of one's own, or its file.
        backbone: ``'vit-b16'``, ``'vit-l14'``, ``'vit-h14'``, ``'mini-b8'``; or ``'auto'``: ViT-B/16 where its weights
            are here or can be downloaded, else the miniature that comes with the package.
        background: True, or words that describe it, adds a class 0 to which unsure pixels go. So does a first class
            that is called ``'background'``.
        threshold: Probability below which a pixel is unsure; by default the host's own.
        tpa: False takes the host alone and loads no encoder.
        bank: File of a saved bank to start with; its ``k`` goes with it.
        alpha: Share of the host in the fusion; by default that of the config, 0.5, and so on.
        lambda_: What brings cosines to the size of log-probabilities; 5.
        k: A pixel is an anchor where its class is more than ``k`` times as probable as by chance; 2.
        device: Such as ``'cuda:1'``; by default the best there is.
        keep: Of how many pictures the networks' outputs stay in memory, so that the networks need not run again.
        progress: Whether progress bars are shown where there is more than one picture.

    Attributes:
        class_names: One name per class; a label is an index into it.
        palette: RGB of each class.
        about: The networks in use, in words.
        note: Where these are not the ones that ``'auto'`` looked for first, why.
    """

    def __init__(
        self,
        classes: Classes | None = None,
        host: str | os.PathLike | Config = 'sclip',
        backbone: str = AUTO,
        *,
        background: bool | str | Sequence[str] = False,
        threshold: float | None = None,
        tpa: bool = True,
        bank: str | os.PathLike | None = None,
        alpha: float | None = None,
        lambda_: float | None = None,
        k: float | None = None,
        device: str | None = None,
        keep: int = 32,
        progress: bool = True,
    ) -> None:
        self._settings = alpha, lambda_, k
        self.keep, self.progress = keep, progress
        self._wish = Wish(classes, host, backbone, background, threshold, tpa, device)
        self._start(load_networks(self._wish))
        if bank is not None:
            self.load_bank(bank)

    def _start(self, networks: Networks) -> None:
        self._networks = networks
        self.class_names, self.palette = networks.class_names, networks.palette
        self.about, self.note = networks.about, networks.note
        self._kept: OrderedDict[str, Outputs] = OrderedDict()
        alpha, lambda_, self.k = self._settings
        self.fusion = fusion_with(networks.model.fusion if networks.with_tpa else Fusion(), alpha, lambda_)
        self.forget()
        print_log(f'Networks: {self.about}.' + (f' {networks.note}' if networks.note else ''), 'current')
        if len(self.class_names) == 1:
            warnings.warn(
                f'With {self.class_names[0]!r} as the only class every pixel belongs to it: add a background or '
                'further classes.',
                stacklevel=3,
            )

    def with_classes(self, classes: Classes, background: bool | str | Sequence[str] = False) -> Segmenter:
        """A segmenter for other classes, with an empty bank. It shares the encoder with this one."""
        other = copy.copy(self)
        other._wish = replace(self._wish, classes=classes, background=background)
        other._start(load_networks(other._wish, self._networks.encoder))
        return other

    # Pictures in, results out

    def segment(self, images: Images) -> Result | Results:
        """Segments pictures. Where nothing was folded into the bank yet, they are its pool themselves.

        Files that cannot be read are skipped with a warning; where there is no other, it is an error.

        Args:
            images: Paths, folders, Pillow images, RGB arrays (H, W, 3), tensors (3, H, W), batches, or lists of them.

        Returns:
            A :class:`Result` for a single picture, :class:`Results` for a list, a batch or a folder.
        """
        found = collect(images)
        if self._adaptation is not None and not self.bank.images:
            self._fold_in(found)
        results = Results(self._each(found, 'Segmenting', self._result), found.skipped)
        return results[0] if found.single else results

    def stream(self, images: Images, grow: bool = False) -> Iterator[Result]:
        """Segments pictures one by one, however many there are, and keeps none of them.

        Args:
            images: As for :meth:`segment`; of a generator or a video no more than one picture is read ahead.
            grow: Fold every picture into the bank before it is segmented.
        """
        for picture in lazily(images):
            try:
                if grow:
                    self._adapting.fold_in(picture, remember=False)
                yield self._result(picture)
            except Unreadable as error:
                warnings.warn(f'Skipped: {error}', SkippedWarning, stacklevel=2)

    def _result(self, picture: Picture) -> Result:
        bank = None if self._adaptation is None else self._adaptation.snapshot()
        return Result(self, picture, bank, self.fusion)

    # The bank

    @property
    def bank(self) -> PrototypeBank:
        """The bank at present."""
        return self._adapting.bank

    @property
    def _adapting(self) -> Adaptation:
        if self._adaptation is None:
            raise TPAError('There is no bank without TPA: leave tpa=False out.')
        return self._adaptation

    def adapt(self, images: Images) -> int:
        """Folds pictures into the bank, those that it does not hold yet. Returns how many these were."""
        before = self.bank.images
        self._fold_in(collect(images))
        return self.bank.images - before

    def bank_for(self, k: float) -> PrototypeBank:
        """The bank with another ``k``, from the same pool. The networks do not run again for what is kept."""
        return self._adapting.with_k(k)

    def load_bank(self, path: str | os.PathLike) -> None:
        """Goes on with a saved bank. Raises TPAError where it was made with another host, encoder or class list."""
        self._adapting.load(path)

    def save_bank(self, path: str | os.PathLike) -> None:
        """Saves the bank as safetensors."""
        self.bank.save(path)

    def describe_bank(self) -> str:
        """One line about the bank: size, coverage, anchors."""
        return describe_bank(self.bank.coverage(), self.class_names)

    def forget(self) -> None:
        """Empties the bank."""
        networks = self._networks
        self._adaptation = Adaptation(networks.model, self.outputs, self.k, self.keep) if networks.with_tpa else None

    def _fold_in(self, found: Collected) -> None:
        for _ in self._each(found, 'Building the bank', self._adapting.fold_in):
            pass

    def _each(self, found: Collected, title: str, action: Callable[[Picture], T]) -> Iterator[T]:
        """Does something with every picture. Those that cannot be read are taken out and named."""
        show = self.progress and len(found.pictures) > 1
        for picture in track(list(found.pictures), title, show=show):
            try:
                yield action(picture)
            except Unreadable as error:
                if len(found.pictures) == 1:
                    raise
                found.skip(picture, str(error))
                warnings.warn(f'Skipped: {error}', SkippedWarning, stacklevel=4)

    # The networks

    @torch.no_grad()
    def outputs(self, picture: Picture) -> Outputs:
        """What the networks say about a picture, from memory where it is kept."""
        if picture.key in self._kept:
            self._kept.move_to_end(picture.key)
            return self._kept[picture.key]
        model = self._networks.model
        packed = self._networks.prepare(picture.load())
        size = tuple(packed['data_samples'].ori_shape)
        if self._networks.refines:
            limit_scores(packed['data_samples'])
        data = model.data_preprocessor({name: [value] for name, value in packed.items()}, False)
        image, sample = data['inputs'][0], data['data_samples'][0]
        if self._networks.with_tpa:
            (evidence,) = model.evidence([image], [sample])
            outputs = Outputs(evidence.scores, evidence.features['encoder'], size)
        else:
            (scores,) = self._networks.host.score_maps([image], [sample])
            outputs = Outputs(scores, None, size)
        if self.keep:
            self._kept[picture.key] = outputs
            while len(self._kept) > self.keep:
                self._kept.popitem(last=False)
        return outputs
