"""TENT: test-time entropy minimization, on LayerNorms because CLIP has no other norms."""

from __future__ import annotations

from mmseg.registry import MODELS
from torch import Tensor

from .norm_adaptation import NormAdaptation
from .wrapper import entropy


@MODELS.register_module()
class TENT(NormAdaptation):
    """Minimizes the mean entropy of the patches before it predicts.

    The original adapts the BatchNorms of a classifier, one step per batch, and never resets them. This is the form for
    CLIP in MLMP's comparison: all LayerNorms of the visual tower, ten steps, then a reset; there the host has one
    prompt ("a photo of a {}") and CLIP's own ``logit_scale`` of 100. ``steps=1, scope='stream'`` is closer to the
    original. Args: see :class:`NormAdaptation`.
    """

    def objective(self, images: Tensor) -> Tensor:
        with self.host.tower.autocast():
            features = self.host.features(images)
        return entropy(self.host.logit_scale * self.host.cosines(features), dim=1).mean((1, 2))
