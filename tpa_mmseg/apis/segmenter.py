"""Segmenter: images in, segmentations out. The models are loaded once, and the bank grows with every pool image."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from mmengine.config import Config
from mmengine.logging import print_log
from PIL import Image
from torch import Tensor

from ..clip.names import Classes
from ..console import track
from ..core import ENCODER, Adapter, EvidenceCache, Fusion, PrototypeBank, anchor_map, decide
from ..core.bank_file import check_fingerprint
from ..core.diagnosis import ConsistencySums, Diagnosis, measured_with
from ..datasets.pool import DEFAULT_SIZE, PoolOptions
from ..errors import TPAError
from ..evaluation import bank_caveats, describe_bank
from ..visualization.panels import resample
from .images import ImageList, Images, ImageSource, UnreadableImage, iterate_images, list_images
from .loading import ImageEvidence, LoadedModel, PreparedImage, load_model
from .options import DEFAULT_BACKBONE, SegmenterOptions
from .render import class_counts, show_anchors
from .result import ClassCoverage, Segmentation, Segmentations, TPASettings

T = TypeVar('T')


class SkippedWarning(UserWarning):
    """An image was left out."""


class CaveatWarning(UserWarning):
    """TPA can do little with a bank."""


class _Setting(NamedTuple):
    """How labels are decided, and how that is reported. Without TPA all parts are empty."""

    adapters: tuple[Adapter, ...] = ()
    settings: TPASettings | None = None
    coverage: tuple[ClassCoverage, ...] = ()


class Segmenter:
    """Segments images with user-defined classes. The models are loaded once.

    Args:
        classes: A list with one entry per class (``;`` separates synonyms); a string, e.g.
            ``'cat, dog, tv; television'``; a file with one class per line; None for the classes of a config.
        host: Name of a host (:func:`~tpa_mmseg.apis.host_names`); or your own config, or its file.
        backbone: CLIP model of the host, e.g. ``'vit-b16'`` or ``'vit-l14'``; or ``'mini-b8'``, the tiny model for
            synthetic scenes that comes with the package.
        background: True, or words that describe it, adds a class 0 for uncertain pixels. So does a first class
            called ``'background'``.
        threshold: Probability below which a pixel is uncertain. Default: that of the host.
        tpa: False segments by the host alone and loads no encoder.
        bank: File of a saved bank to start with. Its ``k`` is fixed.
        alpha: Share of the host in the fusion. Default: that of the config, 0.5.
        lambda_: Weight of the cosines beside log-probabilities. Default: that of the config, 5.
        k: A pixel is an anchor if its class is more than ``k`` times as probable as by chance. Default: 2.
        consistent: Ours, not the paper's: look at the pool a second time, and if labels do not follow the image, add
            a second lookup (docs/method.md). Default: as in the config, False.
        pool_size: Most images that :meth:`segment` builds the bank from, drawn with a fixed seed; None for all.
        cache_bytes: Bytes of evidence to keep, so that images do not go through the models again. The first images
            are kept; evidence of the last image stays in any case.
        device: Torch device, e.g. ``'cuda:1'``. Default: CUDA if available, otherwise CPU.
        progress: Whether to show progress bars if there is more than one image.

    Attributes:
        classes: One name per class; a label is an index into it.
        palette: RGB of each class.
        description: The model, in a few words.
        fusion: Weights of the fusion.
    """

    def __init__(
        self,
        classes: Classes | None = None,
        host: str | os.PathLike | Config = 'sclip',
        backbone: str = DEFAULT_BACKBONE,
        *,
        background: bool | str | Sequence[str] = False,
        threshold: float | None = None,
        tpa: bool = True,
        bank: str | os.PathLike | None = None,
        alpha: float | None = None,
        lambda_: float | None = None,
        k: float | None = None,
        consistent: bool | None = None,
        pool_size: int | None = DEFAULT_SIZE,
        cache_bytes: int = 1 << 30,
        device: str | None = None,
        progress: bool = True,
    ) -> None:
        self._given = alpha, lambda_, k, consistent
        self.pool_size, self.cache_bytes, self.progress = pool_size, cache_bytes, progress
        self._options = SegmenterOptions(classes, host, backbone, background, threshold, tpa, device)
        self._start(load_model(self._options))
        if bank is not None:
            self.load_bank(bank)

    def _start(self, loaded: LoadedModel) -> None:
        self._loaded = loaded
        self.classes, self.palette, self.description = loaded.classes, loaded.palette, loaded.description
        alpha, lambda_, self.k, consistent = self._given
        self.fusion = Fusion() if loaded.encoder is None else loaded.model.fusion
        self.fusion = self._fusion(alpha, lambda_, consistent)
        self.clear_cache()
        self.reset_bank()
        print_log(f'Model: {self.description}.', 'current')

    def with_classes(self, classes: Classes, background: bool | str | Sequence[str] = False) -> Segmenter:
        """Return a segmenter for other classes, with an empty bank. It shares all networks with this one."""
        other = copy.copy(self)
        other._options = replace(self._options, classes=classes, background=background)
        same = other._options == self._options
        other._start(self._loaded if same else load_model(other._options, self._loaded))
        return other

    # Images in, segmentations out

    def segment(
        self,
        images: Images,
        alpha: float | None = None,
        lambda_: float | None = None,
        k: float | None = None,
        consistent: bool | None = None,
    ) -> Segmentation | Segmentations:
        """Segment images. If the bank is empty, it is built from at most :attr:`pool_size` of them first.

        Images in the cache do not go through the models again: other settings are arithmetic only. Files that cannot
        be read are skipped with a warning; if no other image is left, that is an error.

        Args:
            images: Paths, folders, Pillow images, RGB arrays (H, W, 3), tensors (3, H, W), batches, or lists of them.
            alpha, lambda_, k, consistent: Other settings for this call.

        Returns:
            A :class:`Segmentation` for a single image, :class:`Segmentations` for a list, a batch or a folder.
        """
        self._fusion(alpha, lambda_, consistent)  # a wrong value is an error before anything runs
        found = list_images(images)
        if self._bank is not None and not self._bank.images:
            self._add_to_bank(found, self.pool_size)
        setting = self._setting(alpha, lambda_, k, consistent)
        results = Segmentations(self._each(found, 'Segmenting', partial(self._segment, setting=setting)), found.skipped)
        return results[0] if found.single else results

    def segment_one(
        self,
        image: Images,
        alpha: float | None = None,
        lambda_: float | None = None,
        k: float | None = None,
        consistent: bool | None = None,
    ) -> Segmentation:
        """Segment a single image with the bank as it is. Args: as for :meth:`segment`."""
        return self._segment(_single(image), self._setting(alpha, lambda_, k, consistent))

    def stream(self, images: Images, update_bank: bool = False) -> Iterator[Segmentation]:
        """Segment any number of images one by one. None of them is kept.

        Args:
            images: As for :meth:`segment`. A generator or a video is read one image at a time.
            update_bank: Add every image to the bank before it is segmented.
        """
        for image in iterate_images(images):
            try:
                if update_bank:
                    self._add(image, keep=False)
                yield self._segment(image, self._setting(), keep=False)
            except UnreadableImage as error:
                warnings.warn(f'Skipped: {error}', SkippedWarning, stacklevel=2)

    @property
    def images_are_independent(self) -> bool:
        """Whether the labels of an image do not depend on the images before it."""
        return self._loaded.host.images_are_independent

    def prepare(self, image: ImageSource) -> PreparedImage:
        """Read an image for :meth:`segment_batch` or :meth:`adapt_batch`. Threads may do it while the models run."""
        return self._loaded.prepare(image)

    def segment_batch(self, images: Sequence[PreparedImage]) -> list[Segmentation]:
        """Segment images that go through the models together, with the bank as it is. None of them is kept."""
        setting, results = self._setting(), []
        for each, evidence in zip(images, self._loaded.look(images), strict=True):
            results.append(self._decide(each.image, evidence, setting))
            evidence.release()
        return results

    def _segment(self, image: ImageSource, setting: _Setting, keep: bool = True) -> Segmentation:
        return self._decide(image, self.evidence(image, keep), setting)

    @torch.no_grad()
    def _decide(self, image: ImageSource, evidence: ImageEvidence, setting: _Setting) -> Segmentation:
        host, adapted = decide(evidence, setting.adapters, _label_type(len(self.classes)))
        host_labels = _full_size(host, evidence)
        labels = _full_size(adapted[0], evidence) if adapted else host_labels
        shown = self.classes, self.palette, labels, host_labels
        return Segmentation(image, *shown, setting.settings, setting.coverage, self.description)

    def _setting(
        self,
        alpha: float | None = None,
        lambda_: float | None = None,
        k: float | None = None,
        consistent: bool | None = None,
    ) -> _Setting:
        fusion = self._fusion(alpha, lambda_, consistent)
        if self._bank is None:
            return _Setting()
        bank = self.bank_with(k)
        if fusion.consistent and (bank.diagnosis is None or bank.diagnosis.made_with != measured_with(fusion)):
            bank.diagnosis = self._diagnose(bank, fusion)
        found = bank.coverage()
        return _Setting(
            (Adapter(bank.prototypes(), fusion, second=bank.second_term(fusion)),),
            TPASettings(fusion.alpha, fusion.lambda_, bank.rule.k, bank.images),
            tuple(map(ClassCoverage, self.classes, found.anchors, found.covered)),
        )

    def _diagnose(self, bank: PrototypeBank, fusion: Fusion) -> Diagnosis:
        """Look at the pool again; images in the cache need no model."""
        if self._pool is None:
            raise TPAError(
                'Consistent TPA looks at the pool again, but the images of a bank from a file or a stream are not '
                'known: build the bank from images, or save one that was built with consistent=True.'
            )
        sums = ConsistencySums(bank.prototypes(), bank.centered_prototypes(fusion.consistency.center), fusion)
        for image in track(self._pool, 'Looking at the pool again', show=self.progress and len(self._pool) > 1):
            sums.add(self.evidence(image), ENCODER)
        return sums.diagnosis()

    def _fusion(self, alpha: float | None, lambda_: float | None, consistent: bool | None = None) -> Fusion:
        given = {'alpha': alpha, 'lambda_': lambda_, 'consistent': consistent}
        try:
            return replace(self.fusion, **{name: value for name, value in given.items() if value is not None})
        except ValueError as error:
            raise TPAError(f'{error}.') from error

    def probabilities(
        self, image: Images, alpha: float | None = None, lambda_: float | None = None, k: float | None = None
    ) -> np.ndarray:
        """Return (C, H, W) float32 class probabilities of an image with TPA. They take 4 C H W bytes.

        Hosts that refine masks (NACLIP, Trident) decide on at most two megapixels; so do their probabilities.

        Args:
            image: A single image.
            alpha, lambda_, k: As for :meth:`segment`.
        """
        evidence, adapters = self.evidence(_single(image)), self._setting(alpha, lambda_, k).adapters
        scores = adapters[0].fuse(evidence) if adapters else evidence.scores
        return scores.probabilities().cpu().numpy()

    def host_probabilities(self, image: Images) -> np.ndarray:
        """Return (C, H, W) float32 class probabilities of an image by the host alone."""
        return self.evidence(_single(image)).scores.probabilities().cpu().numpy()

    def anchors(self, image: Images, k: float | None = None) -> np.ndarray:
        """Return the (H, W) int32 class of every anchor pixel of an image, -1 elsewhere.

        Args:
            image: A single image.
            k: As for :meth:`segment`.
        """
        rule = self.bank_with(k).rule
        evidence = self.evidence(_single(image))
        anchors = anchor_map(evidence.scores, rule).int().cpu().numpy()
        if rule.k_min_scope == 'image':
            few = np.append(class_counts(anchors, len(self.classes)) < rule.k_min, False)  # the last one is that of -1
            anchors[few[anchors]] = -1
        return _full_size(anchors, evidence)

    def anchor_figure(self, image: Images, k: float | None = None) -> Image.Image:
        """Draw an image beside its anchors. Args: as for :meth:`anchors`."""
        image = _single(image)
        return show_anchors(image, self.anchors(image, k), self.classes, self.palette)

    # The bank

    @property
    def bank(self) -> PrototypeBank:
        """The current bank."""
        if self._bank is None:
            raise TPAError('tpa=False has no bank: leave it out to use TPA.')
        return self._bank

    def adapt(self, images: Images, pool_size: int | None = None) -> int:
        """Add images to the bank, unless it contains them. Returns the number of images that were new.

        Args:
            images: As for :meth:`segment`.
            pool_size: Most images to add, drawn with a fixed seed. Default: all of them.
        """
        before = self.bank.images
        self._add_to_bank(list_images(images), pool_size)
        return self.bank.images - before

    def adapt_batch(self, images: Sequence[PreparedImage]) -> None:
        """Add images that go through the models together to the bank. None of them is kept for another ``k``."""
        for each, evidence in zip(images, self._loaded.look(images), strict=True):
            self.bank.add(evidence)
            self.bank.pool.append(each.image.key)
            self._known.add(each.image.key)
        self._pool = None
        self._other_banks.clear()

    def bank_with(self, k: float | None = None) -> PrototypeBank:
        """Return the bank with another ``k``, of the same images. Cached images need no model."""
        bank = self.bank
        if k is None or k == bank.rule.k:
            return bank
        if self._pool is None:
            raise TPAError(
                f'k is fixed at {bank.rule.k} for a bank loaded from a file or built from a stream. '
                f'Build a new bank with k={k}.'
            )
        if k not in self._other_banks:
            other = self._loaded.model.new_bank(replace(bank.rule, k=k))
            other.fingerprint, other.pool = bank.fingerprint, list(bank.pool)
            for image in self._pool:
                other.add(self.evidence(image))
            self._other_banks[k] = other
        return self._other_banks[k]

    def load_bank(self, path: str | os.PathLike) -> None:
        """Continue with a saved bank. Raises TPAError if it was made with another host, encoder or class list."""
        expected = self.bank.fingerprint
        bank = PrototypeBank.load(path)
        check_fingerprint(bank.fingerprint, expected, path)
        self._use(bank, pool=None)

    def save_bank(self, path: str | os.PathLike, k: float | None = None) -> None:
        """Save the bank as safetensors. Args: k: As for :meth:`bank_with`."""
        self.bank_with(k).save(path)

    def describe_bank(self) -> str:
        """Return one line about the bank: size, coverage, anchors."""
        return describe_bank(self.bank, self.classes)

    def caveats(self) -> list[str]:
        """Return why TPA can do little with this bank, and what to try; nothing if it is a good one."""
        return bank_caveats(self.bank.coverage(), self.bank.rule)

    def reset_bank(self) -> None:
        """Empty the bank. The cache stays."""
        model, bank = self._loaded.model, None
        if self._loaded.encoder is not None:
            bank = model.new_bank(model.anchor_rule if self.k is None else replace(model.anchor_rule, k=self.k))
            bank.fingerprint = model.fingerprint()
        self._use(bank, pool=[])

    def _use(self, bank: PrototypeBank | None, pool: list[ImageSource] | None) -> None:
        """Use a bank. Args: pool: Its images, to build it with another k; None if they are unknown."""
        self._bank, self._pool = bank, pool
        self._known = set(() if bank is None else bank.pool)
        self._other_banks: dict[float, PrototypeBank] = {}

    def _add_to_bank(self, found: ImageList, size: int | None) -> None:
        count = len(found.images)
        drawn = range(count) if size is None else PoolOptions(size=min(size, count)).draw(count)
        for _ in self._each(found, 'Building the bank', self._add, [found.images[index] for index in drawn]):
            pass
        for text in self.caveats():
            warnings.warn(text, CaveatWarning, stacklevel=4)

    def _add(self, image: ImageSource, keep: bool = True) -> None:
        """Add an image to the bank, unless it contains it. Args: keep: Whether it may be needed for another k."""
        bank = self.bank
        if image.key in self._known:
            return
        bank.add(self.evidence(image, keep))
        bank.pool.append(image.key)
        self._known.add(image.key)
        self._other_banks.clear()
        if self._pool is not None:
            self._pool.append(image)
            # Images in memory are held for other k only as long as they take no more than the cache.
            if not keep or sum(image.nbytes for image in self._pool) > self.cache_bytes:
                self._pool = None

    def _each(
        self, found: ImageList, title: str, action: Callable[[ImageSource], T], chosen: list[ImageSource] | None = None
    ) -> Iterator[T]:
        """Apply an action to every (chosen) image. Those that cannot be read are left out and named."""
        chosen = list(found.images) if chosen is None else chosen
        for image in track(chosen, title, show=self.progress and len(chosen) > 1):
            try:
                yield action(image)
            except UnreadableImage as error:
                if len(found.images) == 1:
                    raise
                found.skip(image, str(error))
                warnings.warn(f'Skipped: {error}', SkippedWarning, stacklevel=4)
        if len(chosen) > 1 and self._last is not None:
            self._last.release()

    # The models

    def evidence(self, image: ImageSource, keep: bool = True) -> ImageEvidence:
        """Return what the models say about an image: from the cache, or by one pass.

        Args:
            image: The image.
            keep: Put it into the cache if there is room.
        """
        found = self._cache.get(image.key)
        if found is None:
            found = self._last if self._last_key == image.key else self._loaded.look([self._loaded.prepare(image)])[0]
            if keep:
                self._cache.put(image.key, found)
        if found is not self._last and self._last is not None:
            # Only the image in view holds what can be computed again.
            self._last.release()
        self._last, self._last_key = found, image.key
        return found

    def clear_cache(self) -> None:
        """Forget the evidence of all images."""
        self._cache = EvidenceCache(self.cache_bytes)
        self._last: ImageEvidence | None = None
        self._last_key: str | None = None


def _single(image: Images) -> ImageSource:
    found = list_images(image)
    if not found.single:
        raise TPAError('A single image is needed here: pass one image, or call segment for a collection.')
    return found.images[0]


def _label_type(num_classes: int) -> torch.dtype:
    """Return the smallest integer type that holds all labels."""
    return next(kind for kind in (torch.uint8, torch.int16, torch.int32) if num_classes <= torch.iinfo(kind).max + 1)


def _full_size(labels: Tensor | np.ndarray, evidence: ImageEvidence) -> np.ndarray:
    """Return labels at the size of the image, which may exceed that of the scores."""
    labels = labels.cpu().numpy() if isinstance(labels, Tensor) else labels
    return labels if labels.shape == evidence.size else resample(labels, evidence.size)
