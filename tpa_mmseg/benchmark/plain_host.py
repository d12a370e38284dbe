"""A host as it is usually written: window by window, everything at full size.

Its network is that of our host. What differs is what follows: every window's scores are upsampled and added to a
canvas of all queries, the canvas is resized to the original image, and softmax and the choice of each class's best
query run on full tensors.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ..hosts.clip_host import CLIPHost


def plain_labels(host: CLIPHost, image: Tensor, size: tuple[int, int]) -> Tensor:
    """(H, W) labels of an image. Args: host; image (3, h, w), pre-processed; size: of the original image."""
    height, width = image.shape[-2:]
    canvas = torch.zeros(len(host.query_to_class), height, width)
    visits = torch.zeros(1, height, width)
    for y in host.sliding.spans(height):
        for x in host.sliding.spans(width):
            window = F.pad(image[:, y.start : y.stop, x.start : x.stop], (x.before, x.after, y.before, y.after))
            scores = host.patch_scores(window[None])
            scores = F.interpolate(scores, (y.padded, x.padded), mode='bilinear')[0]
            scores = scores[:, y.before : y.padded - y.after, x.before : x.padded - x.after]
            canvas += F.pad(scores, (x.start, width - x.stop, y.start, height - y.stop))
            visits[:, y.start : y.stop, x.start : x.stop] += 1
    scores = F.interpolate((canvas / visits)[None], size, mode='bilinear')[0]
    return decide((host.logit_scale * scores).softmax(0), host)


def decide(probabilities: Tensor, host: CLIPHost) -> Tensor:
    """(Q, H, W) probabilities of queries -> (H, W) labels, through all classes x queries x pixels."""
    classes = torch.tensor(host.query_to_class)
    if len(classes) != host.num_classes:
        members = F.one_hot(classes, host.num_classes).T[:, :, None, None]
        probabilities = (members * probabilities).amax(1)
    best, labels = probabilities.max(0)
    labels[best < host.rule.prob_thd] = 0
    return labels
