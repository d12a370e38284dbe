"""TPA written down as its equations read, with everything at full size.

Features are upsampled to D x H x W, probabilities to C x H x W, and the host's rules are applied to whole maps. It is
slow and takes gigabytes, and there is nothing in it to get wrong: the tests hold :mod:`tpa_mmseg.core` against it, and
the benchmark measures what the bands and the algebra save. It computes in the float type that it is given.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tpa_mmseg.core import ARGMAX, AnchorRule, DecisionRule


def upsample(values: Tensor, size: tuple[int, int], align_corners: bool = False) -> Tensor:
    """(C, h, w) -> (C, H, W)."""
    return F.interpolate(values[None], size, mode='bilinear', align_corners=align_corners)[0]


def class_scores(queries: Tensor, query_to_class: Sequence[int] | None = None) -> Tensor:
    """Softmax over queries, best query of each class: (Q, H, W) scaled scores -> (C, H, W), not on the simplex."""
    scores = queries.softmax(0)
    if query_to_class is None:
        return scores
    of_query = torch.tensor(query_to_class)
    return torch.stack([scores[of_query == label].amax(0) for label in range(int(of_query.max()) + 1)])


def probabilities(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Class scores (C, H, W) -> probabilities on the simplex and the (H, W) mass they were divided by (Eq. 1)."""
    mass = scores.sum(0)
    return scores / mass, mass


def decide(scores: Tensor, rule: DecisionRule = ARGMAX) -> Tensor:
    """The host's own rule on full-size class scores: (C, H, W) -> (H, W) labels."""
    if rule.threshold is not None:
        return (scores[1] > rule.threshold).long()
    labels = scores.argmax(0)
    if rule.area_thd is not None:
        count = torch.stack([(labels == label).sum() for label in range(len(scores))])
        kept = count > rule.area_thd * count[1:].sum()
        kept[0] = True
        scores = scores * kept[:, None, None]
        labels = scores.argmax(0)
    labels[scores.amax(0) < rule.prob_thd] = 0
    return labels


def anchor_labels(p: Tensor, rule: AnchorRule) -> Tensor:
    """Step 1: (C, H, W) probabilities -> (H, W) class of each anchor, -1 elsewhere."""
    best, label = p.max(0)
    label[~(best > rule.tau(len(p)))] = -1
    return label


def bank_update(labels: Tensor, phi: Tensor, num_classes: int, k_min: int = 5) -> tuple[Tensor, Tensor]:
    """Steps 2 and 3 for one image.

    Args:
        labels: (H, W) class of each anchor, -1 elsewhere.
        phi: (D, h, w) patch features.
        num_classes: Number of classes C.
        k_min: Fewest anchors of a class.

    Returns:
        (C, D) float64 sums and (C,) counts.
    """
    features, labels = upsample(phi, labels.shape).flatten(1), labels.flatten()
    sums = torch.zeros(num_classes, len(phi), dtype=torch.float64)
    counts = torch.zeros(num_classes, dtype=torch.int64)
    for label in range(num_classes):
        anchors = (labels == label).nonzero()[:, 0]
        if len(anchors) >= k_min:
            # By index: three times as fast as by mask.
            sums[label] = features.index_select(1, anchors).sum(1, dtype=torch.float64)
            counts[label] = len(anchors)
    return sums, counts


def prototypes(sums: Tensor, counts: Tensor) -> Tensor:
    """Step 4: (C, D) sums, (C,) counts -> (C, D) unit vectors, zero for classes without anchors."""
    return F.normalize(sums, dim=1) * (counts > 0)[:, None]


def lookup(vectors: Tensor, covered: Tensor, phi: Tensor, size: tuple[int, int], center: bool = True) -> Tensor:
    """Steps 5 and 6.

    Args:
        vectors: (C, D) prototypes, zero for classes that are not covered.
        covered: (C,) bool.
        phi: (D, h, w) patch features.
        size: Height and width of the image.
        center: Subtract the mean over the covered classes.

    Returns:
        (C, H, W) cosines, zero for classes that are not covered.
    """
    features = upsample(phi, size)
    features /= features.norm(dim=0).clamp_(min=1e-12)
    cosines = torch.einsum('cd,dhw->chw', vectors.to(features.dtype), features)
    if center and covered.any():
        cosines = (cosines - cosines[covered].mean(0)) * covered[:, None, None]
    return cosines


def fuse(p: Tensor, cosines: Tensor, beta: float) -> Tensor:
    """Step 7: (C, H, W) probabilities and cosines -> (C, H, W) fused log-probabilities."""
    return p.clamp(min=torch.finfo(p.dtype).tiny).log_().add_(cosines, alpha=beta)


def fused_labels(log: Tensor, mass: Tensor, rule: DecisionRule = ARGMAX) -> Tensor:
    """The host's rule applied to ``softmax(l) * mass``."""
    return decide(log.softmax(0) * mass, rule)
