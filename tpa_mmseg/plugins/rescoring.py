"""Base class of T3A and LAME: they do not change the network and score its patches in another way."""

from __future__ import annotations

from abc import abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import TPAError
from ..hosts.windows import run_on_windows
from .wrapper import HostWrapper


class RescoringWrapper(HostWrapper):
    """Scores the patches of an image together. Args: see :class:`HostWrapper`."""

    def check(self, host: nn.Module) -> None:
        super().check(host)
        if getattr(host, 'ks_thresh', 0):
            raise TPAError(
                f'{type(self).__name__} and key smoothing both replace the scores of patches: set ks_thresh to 0.'
            )

    @torch.no_grad()
    def score_windows(self, windows: list[list[Tensor]]) -> list[list[Tensor]]:
        features = run_on_windows(self._features, windows, self.host.windows_per_call)
        return [self.rescore_windows(of_image) for of_image in features]

    def _features(self, images: Tensor) -> Tensor:
        """(B, 3, h, w) windows -> (B, E, gh, gw) float32 unit features."""
        with self.host.tower.autocast():
            features = self.host.features(images)
        return F.normalize(features.float(), dim=1)

    def rescore_windows(self, windows: list[Tensor]) -> list[Tensor]:
        """(E, gh, gw) unit features of an image's windows -> their (Q, gh, gw) scores, from all patches together."""
        patches = torch.cat([window.flatten(1).T for window in windows])
        # Patches with NaN keep it, and nothing is learned from them.
        known = torch.isfinite(patches).all(1)
        unknown = ~known[:, None]
        scores = self.rescore(patches.masked_fill(unknown, 0), known).masked_fill_(unknown, float('nan'))
        parts = scores.split([window[0].numel() for window in windows])
        return [part.T.unflatten(1, window.shape[1:]) for part, window in zip(parts, windows, strict=True)]

    @abstractmethod
    def rescore(self, patches: Tensor, known: Tensor) -> Tensor:
        """Scores the patches of an image, in operations that do not wait for a GPU.

        Args:
            patches: (N, E) unit features, zero where they are not known.
            known: (N,) bool; other patches must not change the scores of these.

        Returns:
            (N, Q) scores on the scale of cosines.
        """
