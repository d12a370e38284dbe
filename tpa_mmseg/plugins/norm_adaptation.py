"""Base class of MLMP and TENT: adaptation of LayerNorms at test time."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated

import torch
from torch import Tensor

from ..errors import TPAError
from ..hosts import CLIPHost
from ..hosts.windows import run_batched
from ..options import Positive, Range
from .norms import AdaptedNorms
from .wrapper import HostWrapper


class NormAdaptation(HostWrapper):
    """Adapts the LayerNorms of the host's visual tower to images by minimizing an entropy, then predicts.

    Gradients exist only during a step, whatever mode the caller is in. All windows of an image (or a batch) have the
    same weight; those of one call of the network are in memory together, and the gradients of all calls add up.

    Args:
        host: As for :class:`HostWrapper`.
        steps: Steps of Adam for each image or batch; 0 adapts nothing and computes no gradient.
        lr: Learning rate.
        **kwargs: As for :class:`HostWrapper`.
    """

    def __init__(
        self, host: dict | CLIPHost, steps: Annotated[int, Range(0)] = 10, lr: Positive = 1e-3, **kwargs
    ) -> None:
        super().__init__(host, **kwargs)
        if steps < 0 or not lr > 0:
            raise TPAError(f'steps must be 0 or more and lr must be positive, not {steps} and {lr}.')
        self.steps, self.lr = int(steps), float(lr)
        self._stream: AdaptedNorms | None = None

    @abstractmethod
    def objective(self, images: Tensor) -> Tensor:
        """(B, 3, h, w) windows -> (B,) differentiable values to minimize."""

    def score_adapted(self, windows: list[list[Tensor]]) -> list[list[Tensor]]:
        """Scores windows with the LayerNorms as they are. Args: as for :meth:`score_windows`."""
        return self.host.score_windows(windows)

    def score_windows(self, windows: list[list[Tensor]]) -> list[list[Tensor]]:
        if not self.steps:
            return self._score(windows)
        groups = [windows] if self.scope == 'batch' else [[of_image] for of_image in windows]
        return [scores for group in groups for scores in self._adapt_and_score(group)]

    def reset(self) -> None:
        self._stream = None

    def _adapt_and_score(self, windows: list[list[Tensor]]) -> list[list[Tensor]]:
        norms = self._stream or self.new_norms()
        if self.scope == 'stream':
            self._stream = norms
        self.adapt(norms, [window for of_image in windows for window in of_image])
        with norms.in_use():
            return self._score(windows)

    @torch.no_grad()
    def _score(self, windows: list[list[Tensor]]) -> list[list[Tensor]]:
        return self.score_adapted(windows)

    def new_norms(self) -> AdaptedNorms:
        """Returns copies of the host's LayerNorms, to be adapted."""
        return AdaptedNorms(self.host.tower, self.lr)

    def adapt(self, norms: AdaptedNorms, windows: list[Tensor]) -> Tensor:
        """Adapts LayerNorms to some windows together.

        Args:
            norms: The LayerNorms.
            windows: (3, h, w) each; those with NaN are dropped, because they would turn the LayerNorms into NaN.

        Returns:
            (steps,) mean objective of the windows at the start of each step.
        """
        # One list of flags, so that a GPU is waited for once.
        finite = torch.stack([torch.isfinite(window).all() for window in windows]).tolist()
        windows = [window for window, known in zip(windows, finite, strict=True) if known]
        if not windows:
            return torch.zeros(0)

        def learn(images: Tensor) -> Tensor:
            losses = self.objective(images)
            (losses.sum() / len(windows)).backward(inputs=norms.parameters())
            return losses.detach()

        history = []
        with norms.in_use(), torch.inference_mode(False), torch.enable_grad():
            for _ in range(self.steps):
                norms.optimizer.zero_grad()
                history.append(torch.stack(run_batched(learn, windows, self.host.windows_per_call)).mean())
                norms.optimizer.step()
        return torch.stack(history)

    def settings(self) -> dict:
        return {'steps': self.steps, 'lr': self.lr}
