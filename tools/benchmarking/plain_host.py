"""A host as it is usually written: window by window, everything at full size.

Networks run as in :mod:`.plain_networks`. Every window's scores are upsampled and added to a canvas of all queries, the
canvas is resized to the original image, and mask refinement, softmax and the choice of each class's best query run on
full tensors.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from tpa_mmseg.hosts import Trident
from tpa_mmseg.hosts.clip_host import CLIPHost

from .plain_networks import window_scores
from .plain_trident import trident_scores


def plain_labels(host: CLIPHost, image: Tensor, size: tuple[int, int]) -> Tensor:
    """(H, W) labels of an image. Args: host; image (3, h, w), pre-processed; size: of the original image."""
    scores = trident_scores(host, image, size)[0] if isinstance(host, Trident) else slide(host, image)
    scores = F.interpolate(scores[None], size, mode='bilinear')[0]
    if host.pamr_steps:
        guide = F.interpolate(image[None], size, mode='bilinear')[0]
        scores = refine(scores, guide, host.pamr_steps, host.pamr_dilations)
    return decide((host.logit_scale * scores).softmax(0), host)


def slide(host: CLIPHost, image: Tensor) -> Tensor:
    """(Q, h, w) mean score of the windows that cover a pixel; a whole image's own where it is upsampled only once."""
    height, width = image.shape[-2:]
    if host.sliding.whole and not host.resize_via_input:
        return window_scores(host, image[None])[0]
    canvas = torch.zeros(len(host.query_to_class), height, width)
    visits = torch.zeros(1, height, width)
    for y in host.sliding.spans(height):
        for x in host.sliding.spans(width):
            window = F.pad(image[:, y.start : y.stop, x.start : x.stop], (x.before, x.after, y.before, y.after))
            scores = F.interpolate(window_scores(host, window[None]), (y.padded, x.padded), mode='bilinear')[0]
            scores = scores[:, y.before : y.padded - y.after, x.before : x.padded - x.after]
            canvas += F.pad(scores, (x.start, width - x.stop, y.start, height - y.stop))
            visits[:, y.start : y.stop, x.start : x.stop] += 1
    return canvas / visits


def refine(scores: Tensor, image: Tensor, steps: int, dilations: Sequence[int]) -> Tensor:
    """Mask refinement with all neighbors of all pixels: (Q, H, W) -> (Q, H, W). Args: image: (3, H, W) guide."""
    around = _neighbors(image, dilations)
    center = image[:, None].expand(-1, len(dilations), -1, -1)
    deviation = torch.cat((around, center), 1).std(1, keepdim=True)
    distance = ((around - image[:, None]).abs() / (1e-8 + 0.1 * deviation)).mean(0)
    affinity = (-distance).softmax(0)
    for _ in range(steps):
        scores = _neighbors(scores, dilations).mul_(affinity).sum(1)
    return scores


def _neighbors(maps: Tensor, dilations: Sequence[int]) -> Tensor:
    """(C, H, W) -> (C, 8 * len(dilations), H, W), the border repeated."""
    height, width = maps.shape[-2:]
    shifted = []
    for d in dilations:
        padded = F.pad(maps, (d, d, d, d), mode='replicate')
        corners = [(y, x) for y in (0, d, 2 * d) for x in (0, d, 2 * d) if (y, x) != (d, d)]
        shifted += [padded[:, y : y + height, x : x + width] for y, x in corners]
    return torch.stack(shifted, 1)


def decide(probabilities: Tensor, host: CLIPHost) -> Tensor:
    """(Q, H, W) probabilities of queries -> (H, W) labels, through all classes x queries x pixels."""
    classes = torch.tensor(host.query_to_class)
    if len(classes) != host.num_classes:
        if isinstance(host, Trident):  # only its first class has synonyms, and they come first
            first = len(classes) - host.num_classes + 1
            probabilities = torch.cat((probabilities[:first].amax(0, keepdim=True), probabilities[first:]))
        else:
            members = F.one_hot(classes, host.num_classes).T[:, :, None, None]
            probabilities = (members * probabilities).amax(1)
    best, labels = probabilities.max(0)
    labels[best < host.rule.prob_thd] = 0
    return labels
