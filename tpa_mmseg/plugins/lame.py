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
# Iterations from one test of convergence to the next.
_TESTED_TOGETHER = {'cpu': 1}
_TESTED_TOGETHER_GPU = 10


def squared_distances(features: Tensor, known: Tensor) -> Tensor:
    """(N, E) features -> (N, N) squared distances of all pairs, by one product; infinite where one is not known."""
    # Dense features are close to each other: after centering, little precision is lost in the difference.
    centered = features - features.mean(0)
    lengths = centered.square().sum(1).masked_fill(~known, float('inf'))
    return (lengths[:, None] + lengths - 2 * centered @ centered.T).clamp_(min=0).fill_diagonal_(0)


def nearest(features: Tensor, num_neighbors: int, known: Tensor) -> Tensor:
    """(N, N) matrix: one for the nearest neighbors of each row, not counting itself, zero elsewhere.

    Args:
        features: (N, E) unit vectors, zero where they are not known.
        num_neighbors: Number of neighbors.
        known: (N,) bool.
    """
    squared = squared_distances(features, known)
    found = squared.topk(min(num_neighbors + 1, len(features)), dim=1, largest=False).indices[:, 1:]
    return torch.zeros_like(squared).scatter_(1, found, (known[:, None] & known[found]).to(squared))


def gaussian(features: Tensor, num_neighbors: int, known: Tensor) -> Tensor:
    """(N, N) ``exp(-d^2 / 2 s^2)`` of the distances d; s is the mean distance to the last neighbor, counting itself.

    Args: as for :func:`nearest`.
    """
    squared = squared_distances(features, known)
    near = squared.topk(min(num_neighbors, len(features)), dim=1, largest=False).values
    reach = near.masked_fill_(near.isinf(), 0).amax(1)
    width = (reach.sqrt().sum() / known.sum()).square().clamp(min=torch.finfo(squared.dtype).tiny)
    return squared.div_(-2 * width).exp_()


def linear(features: Tensor, num_neighbors: int, known: Tensor) -> Tensor:
    """(N, N) cosines; ``num_neighbors`` and ``known`` are not used. Args: as for :func:`nearest`."""
    return features @ features.T


#: Name in a config -> affinity.
AFFINITIES: dict[str, Callable[[Tensor, int, Tensor], Tensor]] = {'rbf': gaussian, 'knn': nearest, 'linear': linear}


def adjust(probabilities: Tensor, affinity: Tensor) -> Tensor:
    """Iterates ``Y <- softmax(log p + K Y)`` until the energy that it lowers no longer changes.

    Whether it still does is read on a CPU only. On a GPU, which would be waited for, all iterations are computed, and
    what the last one gave before that is kept.

    Args:
        probabilities: (N, C) of the classifier.
        affinity: (N, N) matrix K.

    Returns:
        (N, C) logits, whose softmax is Y.
    """
    unary = (probabilities + _FLOOR).log()
    count = _TESTED_TOGETHER.get(unary.device.type, _TESTED_TOGETHER_GPU)
    pairwise, tried = (unary.new_empty(count, *unary.shape) for _ in range(2))
    energies = unary.new_full((count + 1,), float('nan'), dtype=torch.float64)
    logits, done = unary, torch.zeros((), dtype=torch.bool, device=unary.device)
    for first in range(0, _ITERATIONS, count):
        now = logits
        for of_neighbors, found in zip(pairwise, tried, strict=True):
            torch.mm(affinity, now.softmax(1), out=of_neighbors)
            now = torch.add(unary, of_neighbors, out=found)
        log = tried.log_softmax(2)
        changes = log.exp().mul_(log.sub_(unary).sub_(pairwise))
        energies[0] = energies[-1]
        torch.sum(changes.flatten(1), 1, dtype=torch.float64, out=energies[1:])
        if first == 0:
            energies[1].fill_(float('nan'))  # the first is compared with nothing
        settled = energies.diff().abs() <= _TOLERANCE * energies[:-1].abs()
        if count == 1:
            logits = tried[0]
            if settled:
                break
        else:
            # The first iteration that settled, else the last.
            chosen = torch.where(settled.any(), settled.int().argmax(), count - 1)
            logits = torch.where(done, logits, tried.index_select(0, chosen[None])[0])
            done = done | settled.any()
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

    def rescore(self, patches: Tensor, known: Tensor) -> Tensor:
        scale = self.host.logit_scale
        probabilities = (scale * patches @ self.host.text_features.T).softmax(1)
        affinity = AFFINITIES[self.affinity](patches, self.num_neighbors, known)
        if self.symmetric:
            affinity = (affinity + affinity.T) / 2
        # The host multiplies by its scale before its softmax.
        return adjust(probabilities, affinity) / scale

    def settings(self) -> dict:
        return {'affinity': self.affinity, 'num_neighbors': self.num_neighbors, 'symmetric': self.symmetric}
