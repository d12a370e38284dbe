"""A model with a bank that grows with a user's images."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from mmengine.logging import print_log

from ..console import track
from ..core import Fusion, PrototypeBank
from ..core.bank_file import check_fingerprint
from ..datasets.pool import PoolOptions
from ..errors import TPAError
from ..evaluation import bank_caveats, describe_bank
from .evidence import EvidenceSource
from .growing import GrowingBank
from .images import ImageList, Images, ImageSource, UnreadableImage, list_images
from .loading import ImageEvidence, LoadedModel, PreparedImage

T = TypeVar('T')
Given = tuple[float | None, float | None, float | None, bool | None]


class SkippedWarning(UserWarning):
    """An image was left out."""


class CaveatWarning(UserWarning):
    """TPA can do little with a bank."""


class AdaptedModel:
    """A loaded model and its bank: the part of :class:`~tpa_mmseg.apis.Segmenter` that segments nothing yet.

    Args:
        loaded: The model.
        given: ``alpha``, ``lambda_``, ``k`` and ``consistent``; each None for that of the config.
        cache_bytes: Bytes of evidence to keep.
        progress: Whether to show progress bars if there is more than one image.
    """

    _growing: GrowingBank | None

    def __init__(self, loaded: LoadedModel, given: Given, cache_bytes: int, progress: bool) -> None:
        self._given, self.cache_bytes, self.progress = given, cache_bytes, progress
        self._start(loaded)

    def _start(self, loaded: LoadedModel) -> None:
        self._loaded = loaded
        self.classes, self.palette, self.description = loaded.classes, loaded.palette, loaded.description
        alpha, lambda_, self.k, consistent = self._given
        self.fusion = Fusion() if loaded.encoder is None else loaded.model.fusion
        self.fusion = self._fusion(alpha, lambda_, consistent)
        self._evidence = EvidenceSource(loaded, self.cache_bytes)
        self.reset_bank()
        print_log(f'Model: {self.description}.', 'current')

    @property
    def images_are_independent(self) -> bool:
        """Whether the labels of an image do not depend on the images before it."""
        return self._loaded.host.images_are_independent

    def prepare(self, image: ImageSource) -> PreparedImage:
        """Read an image for :meth:`segment_batch` or :meth:`adapt_batch`. Threads may do it while the models run."""
        return self._loaded.prepare(image)

    def _fusion(self, alpha: float | None, lambda_: float | None, consistent: bool | None = None) -> Fusion:
        given = {'alpha': alpha, 'lambda_': lambda_, 'consistent': consistent}
        try:
            return replace(self.fusion, **{name: value for name, value in given.items() if value is not None})
        except ValueError as error:
            raise TPAError(f'{error}.') from error

    @property
    def bank(self) -> PrototypeBank:
        """The current bank."""
        return self._bank().bank

    def _bank(self) -> GrowingBank:
        if self._growing is None:
            raise TPAError('tpa=False has no bank: leave it out to use TPA.')
        return self._growing

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
        for image, evidence in self._evidence.of_batch(images):
            self._bank().add_unseen(image, evidence)

    def bank_with(self, k: float | None = None) -> PrototypeBank:
        """Return the bank with another ``k``, of the same images. Cached images need no model."""
        return self._bank().with_k(k)

    def load_bank(self, path: str | os.PathLike) -> None:
        """Continue with a saved bank. Raises TPAError if it was made with another host, encoder or class list."""
        expected = self.bank.fingerprint
        bank = PrototypeBank.load(path)
        check_fingerprint(bank.fingerprint, expected, path)
        self._growing = GrowingBank(bank, self._evidence, from_file=True)

    def save_bank(self, path: str | os.PathLike, k: float | None = None) -> None:
        """Save the bank as safetensors. Args: k: As for :meth:`bank_with`."""
        self.bank_with(k).save(path)

    def diagnose(self) -> None:
        """Let :meth:`describe_bank` say whether the host's labels follow the image, if the pool is known."""
        if self._bank().knows_its_pool:
            self._bank().diagnose(self.bank, self.fusion, self.progress)

    def describe_bank(self) -> str:
        """Return one line about the bank: size, coverage, anchors, and the diagnosis if there is one."""
        return describe_bank(self.bank, self.classes)

    def caveats(self) -> list[str]:
        """Return why TPA can do little with this bank, and what to try; nothing if it is a good one."""
        return bank_caveats(self.bank.coverage(), self.bank.rule)

    def reset_bank(self) -> None:
        """Empty the bank. The cache stays."""
        model, self._growing = self._loaded.model, None
        if self._loaded.encoder is not None:
            bank = model.new_bank(model.anchor_rule if self.k is None else replace(model.anchor_rule, k=self.k))
            bank.fingerprint = model.fingerprint()
            self._growing = GrowingBank(bank, self._evidence)

    def _add_to_bank(self, found: ImageList, size: int | None) -> None:
        count = len(found.images)
        drawn = range(count) if size is None else PoolOptions(size=min(size, count)).draw(count)
        for _ in self._each(found, 'Building the bank', self._bank().add, [found.images[index] for index in drawn]):
            pass
        for text in self.caveats():
            warnings.warn(text, CaveatWarning, stacklevel=4)

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
        if len(chosen) > 1:
            self._evidence.release()

    def evidence(self, image: ImageSource, keep: bool = True) -> ImageEvidence:
        """Return what the models say about an image: from the cache, or by one pass.

        Args:
            image: The image.
            keep: Put it into the cache if there is room.
        """
        return self._evidence.of(image, keep)

    def clear_cache(self) -> None:
        """Forget the evidence of all images."""
        self._evidence.clear(self.cache_bytes)
