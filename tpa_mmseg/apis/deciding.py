"""From evidence to arrays at the size of the image: labels, and anchors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..core import Adapter, AnchorRule, Fusion, PrototypeBank, anchor_map, decide
from ..visualization.panels import resample
from .images import ImageSource
from .loading import ImageEvidence, LoadedModel
from .render import class_counts
from .result import ClassCoverage, Segmentation, TPASettings


class Setting(NamedTuple):
    """How labels are decided, and how that is reported. Without TPA all parts are empty."""

    adapters: tuple[Adapter, ...] = ()
    settings: TPASettings | None = None
    coverage: tuple[ClassCoverage, ...] = ()

    @classmethod
    def of(cls, bank: PrototypeBank, fusion: Fusion, classes: tuple[str, ...]) -> Setting:
        """Return the setting of TPA with a bank, as it is now."""
        found = bank.coverage()
        return cls(
            (Adapter(bank.prototypes(), fusion, second=bank.second_term(fusion)),),
            TPASettings(fusion.alpha, fusion.lambda_, bank.rule.k, bank.images),
            tuple(map(ClassCoverage, classes, found.anchors, found.covered)),
        )


@torch.no_grad()
def decide_image(image: ImageSource, evidence: ImageEvidence, setting: Setting, loaded: LoadedModel) -> Segmentation:
    """Decide the labels of an image. Args: evidence: Its evidence; setting: How; loaded: The model it is from."""
    host, adapted = decide(evidence, setting.adapters, _label_type(len(loaded.classes)))
    host_labels = _full_size(host, evidence)
    labels = _full_size(adapted[0], evidence) if adapted else host_labels
    shown = loaded.classes, loaded.palette, labels, host_labels
    return Segmentation(image, *shown, setting.settings, setting.coverage, loaded.description)


def image_anchors(evidence: ImageEvidence, rule: AnchorRule, num_classes: int) -> np.ndarray:
    """Return the (H, W) int32 class of every anchor pixel of an image, -1 elsewhere."""
    anchors = anchor_map(evidence.scores, rule).int().cpu().numpy()
    if rule.k_min_scope == 'image':
        few = np.append(class_counts(anchors, num_classes) < rule.k_min, False)  # the last one is that of -1
        anchors[few[anchors]] = -1
    return _full_size(anchors, evidence)


def _label_type(num_classes: int) -> torch.dtype:
    """Return the smallest integer type that holds all labels."""
    return next(kind for kind in (torch.uint8, torch.int16, torch.int32) if num_classes <= torch.iinfo(kind).max + 1)


def _full_size(labels: Tensor | np.ndarray, evidence: ImageEvidence) -> np.ndarray:
    """Return labels at the size of the image, which may exceed that of the scores."""
    labels = labels.cpu().numpy() if isinstance(labels, Tensor) else labels
    return labels if labels.shape == evidence.size else resample(labels, evidence.size)
