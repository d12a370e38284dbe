"""T3A: a classifier of prototypes that are adjusted to the features met at test time."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from torch import Tensor

from ..errors import TPAError
from ..hosts import CLIPHost
from .rescoring import RescoringWrapper
from .wrapper import entropy


class Supports(NamedTuple):
    """Features that stand for classes, and how sure the original classifier was of them."""

    features: Tensor  #: (S, E)
    labels: Tensor  #: (S,) int64
    entropies: Tensor  #: (S,)

    @classmethod
    def of(cls, features: Tensor, weight: Tensor) -> Supports:
        """(S, E) features, labeled by a linear classifier. Args: weight (C, E), its scale included."""
        logits = features @ weight.T
        return cls(features, logits.argmax(1), entropy(logits, dim=1))

    def joined(self, other: Supports) -> Supports:
        return Supports(*(torch.cat(pair) for pair in zip(self, other, strict=True)))

    def surest(self, count: int) -> Supports:
        """The ``count`` supports of each class with the lowest entropy."""
        order = self.entropies.argsort(stable=True)
        order = order[self.labels[order].argsort(stable=True)]
        labels = self.labels[order]
        # Sorted by class and then by entropy, a support's rank is its distance from the first of its class.
        first = torch.searchsorted(labels, labels)
        kept = order[torch.arange(len(order), device=order.device) - first < count]
        return Supports(*(part[kept] for part in self))

    def prototypes(self, classes: int) -> Tensor:
        """(C, E) direction of the sum of each class's unit supports, zero for a class without any."""
        sums = self.features.new_zeros(classes, self.features.shape[1])
        return F.normalize(sums.index_add_(0, self.labels, F.normalize(self.features, dim=1)), dim=1)


@MODELS.register_module()
class T3A(RescoringWrapper):
    """Test-time template adjuster on patches: every text query is a class, its vector the first support.

    The patches of an image join the supports of the queries that they look like, then only the surest are kept, then
    the image is scored against the prototypes: an image always has a say in its own. All patches of an image, those
    of overlapping windows included, come at once.

    Args:
        host: As for :class:`HostWrapper`. Its ``logit_scale`` decides how sure the classifier is of a patch.
        filter_k: Supports that are kept for each query; None keeps all, which needs ``scope='image'``. So at most
            queries x ``filter_k`` features outlive an image.
        scope: ``'image'`` or ``'stream'``.
        **kwargs: As for :class:`HostWrapper`.
    """

    scopes = ('image', 'stream')

    def __init__(self, host: dict | CLIPHost, filter_k: int | None = 20, **kwargs) -> None:
        super().__init__(host, **kwargs)
        if filter_k is not None and filter_k < 1:
            raise TPAError(f'T3A.filter_k must be at least 1, or None to keep all supports, not {filter_k}.')
        if filter_k is None and self.scope == 'stream':
            raise TPAError("T3A would keep every patch of every image: set filter_k, or scope='image'.")
        self.filter_k = filter_k
        self._stream: Supports | None = None

    def rescore(self, patches: Tensor) -> Tensor:
        weight = self.host.logit_scale * self.host.text_features
        supports = Supports.of(weight, weight) if self._stream is None else self._stream
        supports = supports.joined(Supports.of(patches, weight))
        if self.filter_k is not None:
            supports = supports.surest(self.filter_k)
        if self.scope == 'stream':
            self._stream = supports
        return patches @ supports.prototypes(len(weight)).T

    def reset(self) -> None:
        self._stream = None

    def settings(self) -> dict:
        return {'filter_k': self.filter_k}
