"""Evidence: what the networks say about one image. Networks run before it; after it there is only arithmetic."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Generic, TypeVar

from torch import Tensor

from .alarms import Alarms
from .decision import count_labels, label_type
from .norm import UpsampledNorm
from .scores import ScoreMap
from .sweep import PLAIN, sweep_labels

#: The name of a model's own encoder.
ENCODER = 'encoder'

_E = TypeVar('_E', bound='Evidence')


@dataclass(frozen=True, eq=False)
class Evidence:
    """The host's scores and the encoders' features of one image: all that anchors, lookup and fusion need.

    Args:
        scores: The host's class probabilities.
        features: Encoder's name -> (D, h, w) patch features; empty for a host alone.
        name: Identifies the image: its path, or a digest of its content.

    Attributes:
        alarms: Checks of scores and features that were not read yet.
    """

    scores: ScoreMap
    features: Mapping[str, Tensor] = field(default_factory=dict)
    name: str = ''
    alarms: Alarms = field(default_factory=Alarms, init=False, repr=False)
    _norms: dict[str, UpsampledNorm] = field(default_factory=dict, init=False, repr=False)
    _counts: list[Tensor] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        self.alarms.extend(self.scores.alarms)

    @property
    def seed(self) -> int:
        """Seed of the image's random anchors: the same on every rank, in every order and in every folder."""
        return zlib.crc32(PurePath(self.name).name.encode())

    @property
    def half(self) -> int:
        """0 or 1: the half of a bank that the image belongs to, the same on every rank and in every order."""
        return hashlib.blake2b(PurePath(self.name).name.encode(), digest_size=1).digest()[0] & 1

    def norm(self, encoder: str = ENCODER) -> UpsampledNorm:
        """``|Up(phi)|`` of an encoder's features, computed once for all adapters."""
        if encoder not in self._norms:
            self._norms[encoder] = UpsampledNorm(self.features[encoder], self.scores.size)
        return self._norms[encoder]

    def class_counts(self) -> Tensor:
        """(C,) int64 number of pixels at which each class has the host's highest score, counted once."""
        if not self._counts:
            plain = sweep_labels(self.scores, [PLAIN], label_type(self.scores.num_classes))
            self.keep_counts(plain[0])
        return self._counts[0]

    def keep_counts(self, plain: Tensor) -> None:
        """Counts labels that were found anyway. Args: plain: (H, W) classes with the host's highest scores."""
        self._counts[:] = [count_labels(plain, self.scores.num_classes)]

    @property
    def nbytes(self) -> int:
        """Bytes it holds, including those behind the score map."""
        features = sum(phi.nbytes for phi in self.features.values())
        return self.scores.nbytes + features + sum(norm.nbytes for norm in self._norms.values())

    def release(self) -> None:
        """Free everything that can be computed again without a network."""
        self.scores.release()
        self._norms.clear()


class EvidenceCache(Generic[_E]):
    """Evidence of as many images as fit into a number of bytes.

    First come, first kept: a pool is read once for the bank and once for the labels, and in such a cyclic scan the
    least recently used image is always the one that is needed next.

    Args:
        limit: Bytes that may be held.
    """

    def __init__(self, limit: int) -> None:
        self.limit = int(limit)
        self._kept: dict[Hashable, _E] = {}

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def nbytes(self) -> int:
        return sum(evidence.nbytes for evidence in self._kept.values())

    def get(self, key: Hashable) -> _E | None:
        """The evidence kept under a key. What the other images can compute again is freed if memory is short."""
        found = self._kept.get(key)
        if found is not None and self.nbytes > self.limit:
            self._release_all_but(found)
        return found

    def put(self, key: Hashable, evidence: _E) -> bool:
        """Keep the evidence if there is room for it. Returns whether it was kept."""
        if key in self._kept:
            return True
        if not self.limit:
            return False
        if self.nbytes + evidence.nbytes > self.limit:
            self._release_all_but(evidence)
            if self.nbytes + evidence.nbytes > self.limit:
                return False
        self._kept[key] = evidence
        return True

    def clear(self) -> None:
        self._kept.clear()

    def _release_all_but(self, used: Evidence) -> None:
        for evidence in self._kept.values():
            if evidence is not used:
                evidence.release()
