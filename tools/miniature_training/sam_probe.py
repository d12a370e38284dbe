"""What the tiny SAM can do so far, measured on scenes it never saw and in the way Trident uses it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tpa_mmseg.hosts.trident.correlation import correlate
from tpa_mmseg.miniature.world import Scene
from tpa_mmseg.sam.decoder import SAMDecoder
from tpa_mmseg.sam.encoder import SAMEncoder, SAMFeatures

from .sam_losses import iou
from .sam_prompts import KINDS, Asking, ask, patch_owners


@torch.no_grad()
def probe(encoder: SAMEncoder, decoder: SAMDecoder, scenes: Sequence[Scene], seed: int = 0) -> dict[str, float]:
    """Mean intersection over union by kind of prompt, and how well SAM's correlation keeps to regions.

    Args:
        encoder: SAM's encoder.
        decoder: SAM's decoder.
        scenes: What it is asked about.
        seed: Decides the prompts.

    Returns:
        ``point_best`` of three masks, ``point_selected`` by predicted quality, one figure for each other kind of
        prompt, ``quality_error`` of the predictions for Trident's prompts, and ``correlation``, see
        :func:`share_within_regions`.
    """
    sums: dict[str, list[float]] = {}
    for index, scene in enumerate(scenes):
        features = encoder(scene.image, embed=True)
        sums.setdefault('correlation', []).append(share_within_regions(features, scene.regions))
        for kind in KINDS:
            for name, values in _ious(features, scene, kind, decoder, (seed, index)).items():
                sums.setdefault(name, []).extend(values)
    return {name: float(np.mean(values)) for name, values in sums.items()}


def _ious(
    features: SAMFeatures, scene: Scene, kind: str, decoder: SAMDecoder, seed: tuple[int, int]
) -> dict[str, list[float]]:
    """The figures of every prompt of one kind about a scene."""
    rng, asking = np.random.default_rng(seed), Asking(minimal_area=100, most=20)
    found: dict[str, list[float]] = {}

    def note(name: str, values: Tensor) -> None:
        found.setdefault(name, []).extend(values.tolist())

    for prompts in ask(scene.regions, kind, decoder, rng, asking):
        logits, quality = prompts.answer(decoder, features.embedding)
        reached = iou(logits > 0, (prompts.targets > 0)[:, None])
        if prompts.ambiguous:
            note('point_best', reached[:, 1:].amax(1))
            note('point_selected', reached[:, 1:].gather(1, quality[:, 1:].argmax(1, keepdim=True))[:, 0])
            continue
        note(kind, reached[:, 0])
        if kind in ('3d', '4d'):
            note('quality_error', (quality - reached)[:, 0].abs())
    return found


def share_within_regions(features: SAMFeatures, regions: np.ndarray) -> float:
    """How much of what patches inside a region take over in Trident's first stage comes from their own region.

    Args:
        features: What SAM sees in the scene.
        regions: (H, W) uint8 number of the surface or thing that a pixel belongs to.
    """
    each = F.one_hot(torch.from_numpy(regions).long()).permute(2, 0, 1).float()
    patches = F.interpolate(each[None], features.grid, mode='area')[0]
    mixed = correlate(features, patches, cos_fac=1.2, refine_neg_cos=True)
    owners = patch_owners(regions, features.grid)
    return float(mixed.gather(0, owners.clamp(min=0)[None])[0][owners >= 0].mean())
