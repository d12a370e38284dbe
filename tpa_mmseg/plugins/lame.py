"""LAME: labels that agree with the classifier and, among similar features, with each other.

The license of the original implementation forbids commercial use. This one is written from the formulas of the method
and contains none of its code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import torch
from mmseg.registry import MODELS
from torch import Tensor

from ..errors import TPAError
from ..hosts import CLIPHost
from ..options import AtLeastOne, Choice, one_of
from .rescoring import RescoringWrapper

_ITERATIONS = 100
_TOLERANCE = 1e-8
_FLOOR = 1e-10  # keeps the logarithm of a probability finite


def squared_distances(features: Tensor) -> Tensor:
    """(N, E) features -> (N, N) squared distances of all pairs, by one product."""
    # Dense features are close to each other: after centering, little precision is lost in the difference.
    centered = features - features.mean(0)
    lengths = centered.square().sum(1)
    return (lengths[:, None] + lengths - 2 * centered @ centered.T).clamp_(min=0).fill_diagonal_(0)


def nearest(features: Tensor, num_neighbors: int) -> Tensor:
    """(N, N) matrix: one for the nearest neighbors of each row, not counting itself, zero elsewhere.

    Args:
        features: (N, E) unit vectors.
        num_neighbors: Number of neighbors.
    """
    squared = squared_distances(features)
    found = squared.topk(min(num_neighbors + 1, len(features)), dim=1, largest=False).indices[:, 1:]
    return torch.zeros_like(squared).scatter_(1, found, 1.0)


def gaussian(features: Tensor, num_neighbors: int) -> Tensor:
    """(N, N) ``exp(-d^2 / 2 s^2)`` of the distances d; s is the mean distance to the last neighbor, counting itself.

    Args: as for :func:`nearest`.
    """
    squared = squared_distances(features)
    reach = squared.topk(min(num_neighbors, len(features)), dim=1, largest=False).values[:, -1]
    width = reach.sqrt().mean().square().clamp(min=torch.finfo(squared.dtype).tiny)
    return squared.div_(-2 * width).exp_()


def linear(features: Tensor, num_neighbors: int) -> Tensor:
    """(N, N) cosines; ``num_neighbors`` is not used. Args: as for :func:`nearest`."""
    return features @ features.T


#: Name in a config -> affinity.
AFFINITIES: dict[str, Callable[[Tensor, int], Tensor]] = {'rbf': gaussian, 'knn': nearest, 'linear': linear}


def adjust(probabilities: Tensor, affinity: Tensor) -> Tensor:
    """Iterates ``Y <- softmax(log p + K Y)`` until the energy that it lowers no longer changes.

    Args:
        probabilities: (N, C) of the classifier.
        affinity: (N, N) matrix K.

    Returns:
        (N, C) logits, whose softmax is Y.
    """
    unary = (probabilities + _FLOOR).log()
    logits, before = unary, None
    for iteration in range(_ITERATIONS):
        pairwise = affinity @ logits.softmax(1)
        logits = unary + pairwise
        log = logits.log_softmax(1)
        energy = float((log.exp() * (log - unary - pairwise)).sum(dtype=torch.float64))
        if iteration >= 2 and abs(energy - before) <= _TOLERANCE * abs(before):
            break
        before = energy
    return logits


@MODELS.register_module()
class LAME(RescoringWrapper):
    """Laplacian-adjusted maximum likelihood on patches: no weight changes and nothing is remembered.

    Args:
        host: As for :class:`HostWrapper`. Its ``logit_scale`` turns cosines into probabilities of queries.
        affinity: ``'rbf'``, ``'knn'`` or ``'linear'``, see :data:`AFFINITIES`.
        num_neighbors: Nearest neighbors: those that count for ``'knn'``, the width of the kernel for ``'rbf'``.
        symmetric: Average the affinity with its transpose.
        scope: Patches that are compared with each other: those of all windows of an ``'image'``, or of one
            ``'window'``. Memory grows with the square of their number.
        **kwargs: As for :class:`HostWrapper`.
    """

    scopes = ('image', 'window')

    def __init__(
        self,
        host: dict | CLIPHost,
        affinity: Annotated[str, Choice(AFFINITIES)] = 'rbf',
        num_neighbors: AtLeastOne = 5,
        symmetric: bool = False,
        **kwargs,
    ) -> None:
        super().__init__(host, **kwargs)
        self.affinity = one_of('LAME.affinity', affinity, tuple(AFFINITIES))
        if num_neighbors < 1:
            raise TPAError(f'LAME.num_neighbors must be at least 1, not {num_neighbors}.')
        self.num_neighbors, self.symmetric = int(num_neighbors), bool(symmetric)

    def rescore_windows(self, windows: list[Tensor]) -> list[Tensor]:
        if self.scope == 'image':
            return super().rescore_windows(windows)
        return [scores for window in windows for scores in super(LAME, self).rescore_windows([window])]

    def rescore(self, patches: Tensor) -> Tensor:
        scale = self.host.logit_scale
        probabilities = (scale * patches @ self.host.text_features.T).softmax(1)
        affinity = AFFINITIES[self.affinity](patches, self.num_neighbors)
        if self.symmetric:
            affinity = (affinity + affinity.T) / 2
        # The host multiplies by its scale before its softmax.
        return adjust(probabilities, affinity) / scale

    def settings(self) -> dict:
        return {'affinity': self.affinity, 'num_neighbors': self.num_neighbors, 'symmetric': self.symmetric}
