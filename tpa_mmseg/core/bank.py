"""PrototypeBank: running sums of anchor features, one row per class (Algorithm 1, steps 3 and 4)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import TPAError
from .anchors import AnchorRule, find_anchors
from .bank_file import TENSORS, read_bank, write_bank
from .centered import CenteredPrototypes, SecondTerm
from .diagnosis import Diagnosis, measured_with
from .evidence import ENCODER, Evidence
from .fusion import Fusion, Prototypes
from .scores import ScoreMap


@dataclass(frozen=True)
class Coverage:
    """What a bank has of each class.

    Args:
        images: Number of images in the bank.
        anchors: (C,) number of anchors.
        covered: (C,) whether the class has a prototype.
    """

    images: int
    anchors: tuple[int, ...]
    covered: tuple[bool, ...]


class PrototypeBank:
    """Sums and counts of anchor features. Additive over images, machines and time, and independent of their order.

    Args:
        num_classes: Number of classes C.
        dim: Width D of the encoder's features.
        rule: What an anchor is.
        device: Where the sums live.
        encoder: Name of the encoder whose features it sums.

    Attributes:
        sums: (C, D) float64 sum of the raw, un-normalized features of all anchors.
        counts: (C,) int64 number of anchors.
        half_sums, half_counts: The same of one half of the images; what two halves agree on can be trusted.
        images: Number of images folded in.
        diagnosis: Whether the host's labels follow the image, once it was measured on the pool.
        fingerprint: What the bank was made with (host, encoder, classes, ...), for those who save it.
        pool: Names of the images folded in, so that none is counted twice when a bank is extended.
    """

    def __init__(
        self,
        num_classes: int,
        dim: int,
        rule: AnchorRule | None = None,
        device: torch.device | str = 'cpu',
        encoder: str = ENCODER,
    ) -> None:
        self.rule = rule or AnchorRule()
        self.sums = torch.zeros(num_classes, dim, dtype=torch.float64, device=device)
        self.counts = torch.zeros(num_classes, dtype=torch.int64, device=device)
        self.half_sums, self.half_counts = torch.zeros_like(self.sums), torch.zeros_like(self.counts)
        self.encoder = encoder
        self.images = 0
        self.diagnosis: Diagnosis | None = None
        self.fingerprint: dict = {}
        self.pool: list[str] = []

    def __repr__(self) -> str:
        covered = f'{int(self.covered.sum())} of {self.num_classes} classes covered'
        return (
            f'PrototypeBank({self.images} images, {covered}, {int(self.counts.sum()):,} anchors, k = {self.rule.k:g})'
        )

    @property
    def num_classes(self) -> int:
        return self.sums.shape[0]

    @property
    def dim(self) -> int:
        return self.sums.shape[1]

    @property
    def covered(self) -> Tensor:
        """(C,) bool: the classes that have a prototype."""
        enough = self.rule.k_min if self.rule.k_min_scope == 'pool' else 1
        return self.counts >= max(1, enough)

    def coverage(self) -> Coverage:
        """Anchors per class, and which classes have a prototype."""
        return Coverage(self.images, tuple(self.counts.tolist()), tuple(self.covered.tolist()))

    def add(self, evidence: Evidence) -> Tensor:
        """Add one image. Returns the (C,) number of anchors that it contributed."""
        phi = evidence.features[self.encoder]
        evidence.alarms.add(
            torch.isfinite(phi).all().logical_not(),
            f'The features of {evidence.name or "an image"} contain NaN or infinity, which would spoil the whole '
            'bank: check the weights and the precision of the encoder.',
        )
        sums, counts = self.contribution(evidence.scores, phi, evidence.seed)
        evidence.alarms.check()
        return self._take(sums, counts, evidence.half)

    def update(self, scores: ScoreMap, phi: Tensor, seed: int = 0, half: int = 0) -> Tensor:
        """Add one image by its parts; :meth:`add` takes them from its evidence.

        Args:
            scores: The host's probabilities.
            phi: (D, h, w) patch features of the same image, of any float type.
            seed: Decides the pixels of random anchors; give each image its own.
            half: 0 or 1, the half of the bank that the image belongs to.

        Returns:
            (C,) int64 number of anchors that the image contributed.
        """
        return self._take(*self.contribution(scores, phi, seed), half)

    def contribution(self, scores: ScoreMap, phi: Tensor, seed: int = 0) -> tuple[Tensor, Tensor]:
        """(C, D) float64 sums and (C,) int64 counts that an image would add. Args: as for :meth:`update`."""
        if phi.shape[0] != self.dim or scores.num_classes != self.num_classes:
            raise ValueError(
                f'a bank of {self.num_classes} classes x {self.dim} features was given '
                f'{scores.num_classes} classes x {phi.shape[0]} features'
            )
        weights, counts = find_anchors(scores, (phi.shape[1], phi.shape[2]), self.rule, seed)
        weights, phi = weights.flatten(1), phi.detach().to(weights.device).flatten(1).T.double()
        if weights.device.type != 'cpu':
            # To leave out the classes without anchors would mean to wait for the GPU.
            return weights @ phi, counts
        present = counts.nonzero()[:, 0]
        sums = weights.new_zeros(self.num_classes, self.dim)
        sums[present] = weights[present] @ phi
        return sums, counts

    def _take(self, sums: Tensor, counts: Tensor, half: int) -> Tensor:
        self._grow({'sums': sums, 'counts': counts}, 1)
        if half == 0:
            self._grow({'half_sums': sums, 'half_counts': counts}, 0)
        return counts

    def _grow(self, parts: Mapping[str, Tensor], images: int) -> None:
        for name, part in parts.items():
            own = getattr(self, name)
            # A new tensor, because those of a bank made in inference mode cannot be changed outside it.
            setattr(self, name, own + part.to(own.device))
        self.images += images
        self.diagnosis = None

    def merge(self, other: PrototypeBank) -> None:
        """Adds another bank of the same shape, as if its images had been folded in here."""
        if self.sums.shape != other.sums.shape:
            raise ValueError(f'banks of shape {tuple(self.sums.shape)} and {tuple(other.sums.shape)} cannot be merged')
        self._grow(other._parts(), other.images)
        self.pool += other.pool

    def _parts(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in TENSORS}

    def prototypes(self) -> Prototypes:
        """The unit vector of every covered class."""
        vectors = torch.nn.functional.normalize(self.sums, dim=1)
        covered = self.covered
        return Prototypes(torch.where(covered[:, None], vectors, 0), covered)

    def centered_prototypes(self, around_center: bool = True) -> CenteredPrototypes:
        """The directions of the classes around the center of the feature space (or zero), for consistent TPA."""
        return CenteredPrototypes.of(self._parts().values(), self.covered, self.rule.k_min, around_center)

    def diagnosed_for(self, fusion: Fusion) -> bool:
        """Whether the diagnosis is known, and holds for a fusion."""
        return self.diagnosis is not None and self.diagnosis.made_with == measured_with(fusion)

    def second_term(self, fusion: Fusion) -> SecondTerm | None:
        """What consistent TPA adds to the lookup; None if it is off or if the labels follow the image anyway."""
        if not fusion.consistent:
            return None
        if self.diagnosis is None or not self.diagnosed_for(fusion):
            raise TPAError(
                'Consistent TPA needs to look at the pool again after the bank was built, with the same fusion: build '
                'the bank with this config, without merging or extending it later.'
            )
        if self.diagnosis.beta2 == 0:
            return None
        centered = self.centered_prototypes(fusion.consistency.center)
        return SecondTerm(centered, self.diagnosis.beta2, fusion.consistency.gate)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the bank as safetensors; the file is either complete or not there."""
        fingerprint = {**self.fingerprint, 'diagnosis': None if self.diagnosis is None else vars(self.diagnosis)}
        about = {'images': self.images, 'rule': self.rule.as_dict(), 'fingerprint': fingerprint, 'pool': self.pool}
        write_bank(path, self._parts(), about)

    @classmethod
    def load(cls, path: str | os.PathLike) -> PrototypeBank:
        """Reads a bank onto the CPU. Raises TPAError for a file that is missing, truncated, foreign or damaged."""
        parts, about = read_bank(path)
        try:
            num_classes, dim = parts['sums'].shape
            bank = cls(num_classes, dim, AnchorRule(**about['rule']))
            found = about['fingerprint'].pop('diagnosis', None)
            bank.diagnosis = None if found is None else Diagnosis(**found)
        except (TypeError, ValueError, OverflowError) as error:
            raise TPAError(f'The bank {path} is damaged ({error}): delete it and build it again.') from error
        vars(bank).update(parts)
        bank.images, bank.fingerprint, bank.pool = about['images'], about['fingerprint'], about['pool']
        return bank
