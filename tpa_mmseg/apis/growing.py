"""A bank that grows with a user's images, and is built again from them for other settings."""

from __future__ import annotations

from dataclasses import replace

from ..console import track
from ..core import ENCODER, Fusion, PrototypeBank
from ..core.diagnosis import ConsistencySums, Diagnosis
from ..errors import TPAError
from .evidence import EvidenceSource
from .images import ImageSource
from .loading import ImageEvidence


class GrowingBank:
    """A bank with the images in it. Each of them counts once.

    Args:
        bank: The bank.
        evidence: What the models say about images.
        from_file: Whether the images in the bank are unknown, so that it has the ``k`` that it has.
    """

    def __init__(self, bank: PrototypeBank, evidence: EvidenceSource, from_file: bool = False) -> None:
        self.bank = bank
        self._evidence = evidence
        self._known = set(bank.pool)
        # The images in the bank, to build it with another k; None if they are unknown.
        self._pool: list[ImageSource] | None = None if from_file else []
        self._others: dict[float, PrototypeBank] = {}

    def add(self, image: ImageSource, keep: bool = True) -> None:
        """Add an image, unless it is known. Args: keep: Whether it may be needed for another ``k``."""
        if image.key in self._known:
            return
        self._fold(image, self._evidence.of(image, keep))
        if self._pool is not None:
            self._pool.append(image)
            # Images in memory are held for other k only as long as they take no more than the cache.
            if not keep or sum(each.nbytes for each in self._pool) > self._evidence.cache.limit:
                self._pool = None

    def add_unseen(self, image: ImageSource, evidence: ImageEvidence) -> None:
        """Add an image that is not kept, known or not."""
        self._fold(image, evidence)
        self._pool = None

    def with_k(self, k: float | None) -> PrototypeBank:
        """Return the bank with another ``k``, of the same images. Cached images need no model."""
        bank = self.bank
        if k is None or k == bank.rule.k:
            return bank
        if self._pool is None:
            raise TPAError(
                f'k is fixed at {bank.rule.k} for a bank loaded from a file or built from a stream. '
                f'Build a new bank with k={k}.'
            )
        if k not in self._others:
            rule = replace(bank.rule, k=k)
            other = PrototypeBank(bank.num_classes, bank.dim, rule, bank.sums.device, bank.encoder)
            other.fingerprint, other.pool = bank.fingerprint, list(bank.pool)
            for image in self._pool:
                other.add(self._evidence.of(image))
            self._others[k] = other
        return self._others[k]

    @property
    def knows_its_pool(self) -> bool:
        """Whether the images in the bank can be looked at again."""
        return self._pool is not None

    def diagnose(self, bank: PrototypeBank, fusion: Fusion, progress: bool) -> None:
        """Let a bank of :meth:`with_k` have the diagnosis that consistent TPA needs; images in the cache need no model.

        Args:
            bank: The bank.
            fusion: Weights of the fusion.
            progress: Whether to show a progress bar.
        """
        if not bank.diagnosed_for(fusion):
            bank.diagnosis = self._look_again(bank, fusion, progress)

    def _look_again(self, bank: PrototypeBank, fusion: Fusion, progress: bool) -> Diagnosis:
        if self._pool is None:
            raise TPAError(
                'Consistent TPA looks at the pool again, but the images of a bank from a file or a stream are not '
                'known: build the bank from images, or save one that was built with consistent=True.'
            )
        sums = ConsistencySums(bank.prototypes(), bank.centered_prototypes(fusion.consistency.center), fusion)
        for image in track(self._pool, 'Looking at the pool again', show=progress and len(self._pool) > 1):
            sums.add(self._evidence.of(image), ENCODER)
        return sums.diagnosis()

    def _fold(self, image: ImageSource, evidence: ImageEvidence) -> None:
        self.bank.add(evidence)
        self.bank.pool.append(image.key)
        self._known.add(image.key)
        self._others.clear()
