"""T3A: a classifier of prototypes that are adjusted to the features of the test images."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from torch import Tensor

from ..errors import TPAError
from ..hosts import CLIPHost
from ..options import AtLeastOne
from .rescoring import RescoringWrapper
from .wrapper import entropy


class Supports(NamedTuple):
    """Features that represent classes, with the entropy of the original classifier's prediction for them.

    Their number must not depend on their content, for which a GPU would be waited for. So those that are dropped stay
    as supports of nobody, the class C.
    """

    features: Tensor  #: (S, E)
    labels: Tensor  #: (S,) int64
    entropies: Tensor  #: (S,)

    @classmethod
    def of(cls, features: Tensor, weight: Tensor) -> Supports:
        """Labels (S, E) features by a linear classifier. Args: weight: (C, E), including its scale."""
        logits = features @ weight.T
        return cls(features, logits.argmax(1), entropy(logits, dim=1))

    def only(self, known: Tensor, classes: int) -> Supports:
        """Returns the supports without those that are not known. Args: known: (S,) bool; classes: C."""
        return self._replace(labels=self.labels.masked_fill(~known, classes))

    def joined(self, other: Supports) -> Supports:
        return Supports(*(torch.cat(pair) for pair in zip(self, other, strict=True)))

    def most_certain(self, count: int, classes: int) -> Supports:
        """Returns the ``count`` supports of each of C classes with the lowest entropy, among at most C x ``count``."""
        order = self.entropies.argsort(stable=True)
        order = order[self.labels[order].argsort(stable=True)]
        labels = self.labels[order]
        # Sorted by class and then by entropy, a support's rank is its distance from the first of its class.
        first = torch.searchsorted(labels, labels)
        beyond = torch.arange(len(order), device=order.device) - first >= count
        labels, last = labels.masked_fill(beyond, classes).sort(stable=True)
        kept = order[last][: classes * count]
        return Supports(self.features[kept], labels[: len(kept)], self.entropies[kept])

    def prototypes(self, classes: int) -> Tensor:
        """Returns the (C, E) normalized sum of each class's unit supports, zero for a class without any."""
        sums = self.features.new_zeros(classes + 1, self.features.shape[1])
        return F.normalize(sums.index_add_(0, self.labels, F.normalize(self.features, dim=1))[:classes], dim=1)


@MODELS.register_module()
class T3A(RescoringWrapper):
    """Test-time template adjuster on patches: every text query is a class, its vector the first support.

    The patches of an image are added to the supports of their predicted queries, then only the most certain supports
    are kept, then the image is scored against the prototypes, which therefore depend on it. All patches of an image,
    including those of overlapping windows, are added at once.

    Args:
        host: As for :class:`HostWrapper`. Its ``logit_scale`` scales the logits whose entropy is compared.
        filter_k: Supports that are kept for each query; None keeps all, which requires ``scope='image'``. So at most
            queries x ``filter_k`` features are kept from one image to the next.
        scope: ``'image'`` or ``'stream'``.
        **kwargs: As for :class:`HostWrapper`.
    """

    scopes = ('image', 'stream')

    def __init__(self, host: dict | CLIPHost, filter_k: AtLeastOne | None = 20, **kwargs) -> None:
        super().__init__(host, **kwargs)
        if filter_k is not None and filter_k < 1:
            raise TPAError(f'T3A.filter_k must be at least 1, or None to keep all supports, not {filter_k}.')
        if filter_k is None and self.scope == 'stream':
            raise TPAError("filter_k=None with scope='stream' would keep all patches: set filter_k, or scope='image'.")
        self.filter_k = filter_k
        self._stream: Supports | None = None

    def rescore(self, patches: Tensor, known: Tensor) -> Tensor:
        weight = self.host.logit_scale * self.host.text_features
        supports = Supports.of(weight, weight) if self._stream is None else self._stream
        supports = supports.joined(Supports.of(patches, weight).only(known, len(weight)))
        if self.filter_k is not None:
            supports = supports.most_certain(self.filter_k, len(weight))
        if self.scope == 'stream':
            self._stream = supports
        return patches @ supports.prototypes(len(weight)).T

    def reset(self) -> None:
        self._stream = None

    def settings(self) -> dict:
        return {'filter_k': self.filter_k}
