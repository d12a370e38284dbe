"""Segmenter: images in, segmentations out. The models are loaded once, and the bank grows with every pool image."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from mmengine.config import Config
from PIL import Image

from ..clip.names import Classes
from ..datasets.pool import DEFAULT_SIZE
from .adapted import AdaptedModel, SkippedWarning
from .deciding import Setting, decide_image, image_anchors
from .images import Images, ImageSource, UnreadableImage, iterate_images, list_images, single_image
from .loading import PreparedImage, load_model
from .options import DEFAULT_BACKBONE, SegmenterOptions
from .render import show_anchors
from .result import Segmentation, Segmentations, name_some, one_line


class Segmenter(AdaptedModel):
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
        self.pool_size = pool_size
        self._options = SegmenterOptions(classes, host, backbone, background, threshold, tpa, device)
        super().__init__(load_model(self._options), (alpha, lambda_, k, consistent), cache_bytes, progress)
        if bank is not None:
            self.load_bank(bank)

    def __repr__(self) -> str:
        bank = 'without TPA' if self._growing is None else repr(self.bank)
        return one_line(f'Segmenter({self.description}, {name_some(self.classes)}; {bank})')

    def with_classes(self, classes: Classes, background: bool | str | Sequence[str] = False) -> Segmenter:
        """Return a segmenter for other classes, with an empty bank. It shares all networks with this one."""
        other = copy.copy(self)
        other._options = replace(self._options, classes=classes, background=background)
        same = other._options == self._options
        other._start(self._loaded if same else load_model(other._options, self._loaded))
        return other

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
        if self._growing is not None and not self.bank.images:
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
        return self._segment(single_image(image), self._setting(alpha, lambda_, k, consistent))

    def stream(self, images: Images, update_bank: bool = False) -> Iterator[Segmentation]:
        """Segment any number of images one by one. None of them is kept.

        Args:
            images: As for :meth:`segment`. A generator or a video is read one image at a time.
            update_bank: Add every image to the bank before it is segmented.
        """
        for image in iterate_images(images):
            try:
                if update_bank:
                    self._bank().add(image, keep=False)
                yield self._segment(image, self._setting(), keep=False)
            except UnreadableImage as error:
                warnings.warn(f'Skipped: {error}', SkippedWarning, stacklevel=2)

    def segment_batch(self, images: Sequence[PreparedImage]) -> list[Segmentation]:
        """Segment images that go through the models together, with the bank as it is. None of them is kept."""
        setting, results = self._setting(), []
        for image, evidence in self._evidence.of_batch(images):
            results.append(decide_image(image, evidence, setting, self._loaded))
            evidence.release()
        return results

    def _segment(self, image: ImageSource, setting: Setting, keep: bool = True) -> Segmentation:
        return decide_image(image, self.evidence(image, keep), setting, self._loaded)

    def _setting(
        self,
        alpha: float | None = None,
        lambda_: float | None = None,
        k: float | None = None,
        consistent: bool | None = None,
    ) -> Setting:
        fusion = self._fusion(alpha, lambda_, consistent)
        if self._growing is None:
            return Setting()
        bank = self._growing.with_k(k)
        if fusion.consistent:
            self._growing.diagnose(bank, fusion, self.progress)
        return Setting.of(bank, fusion, self.classes)

    def probabilities(
        self, image: Images, alpha: float | None = None, lambda_: float | None = None, k: float | None = None
    ) -> np.ndarray:
        """Return (C, H, W) float32 class probabilities of an image with TPA. They take 4 C H W bytes.

        Hosts that refine masks (NACLIP, Trident) decide on at most two megapixels; so do their probabilities.

        Args:
            image: A single image.
            alpha, lambda_, k: As for :meth:`segment`.
        """
        evidence, adapters = self.evidence(single_image(image)), self._setting(alpha, lambda_, k).adapters
        scores = adapters[0].fuse(evidence) if adapters else evidence.scores
        return scores.probabilities().cpu().numpy()

    def host_probabilities(self, image: Images) -> np.ndarray:
        """Return (C, H, W) float32 class probabilities of an image by the host alone."""
        return self.evidence(single_image(image)).scores.probabilities().cpu().numpy()

    def anchors(self, image: Images, k: float | None = None) -> np.ndarray:
        """Return the (H, W) int32 class of every anchor pixel of an image, -1 elsewhere.

        Args:
            image: A single image.
            k: As for :meth:`segment`.
        """
        rule = self.bank_with(k).rule
        return image_anchors(self.evidence(single_image(image)), rule, len(self.classes))

    def anchor_figure(self, image: Images, k: float | None = None) -> Image.Image:
        """Draw an image beside its anchors. Args: as for :meth:`anchors`."""
        return show_anchors(single_image(image), self.anchors(image, k), self.classes, self.palette)
