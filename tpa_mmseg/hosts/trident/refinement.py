"""Trident's second stage: SAM redraws the regions of a coarse prediction."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...core import Resized, ScoreMap
from ...core.bilinear import band_ranges
from ...core.tables import to_device
from ...options import Positive, Range, Share, check_fields
from ...sam.decoder import SAMDecoder
from ...sam.encoder import SAMFeatures
from .refined_scores import CoarseScores, RefinedScores
from .regions import Regions, find_regions


@dataclass(frozen=True)
class Refinement:
    """Options of the second stage: the prompts of regions, and which of SAM's masks are kept.

    Args:
        coarse_thresh: Pixels whose best score is below it belong to no region.
        minimal_area: Regions of fewer pixels, at half the size of the image, are not redrawn.
        mask_coff: Factor of the scores in the mask prompt.
        iou_thresh: Masks are kept if SAM predicts a higher intersection over union.
        mask_prompt: The original passes the mask prompt to SAM as a three-dimensional tensor, ``'3d'``, and SAM then
            normalizes it over rows instead of channels. This changes masks and their predicted quality, and the
            published results depend on it: it is the default. ``'4d'`` is the prompt that SAM was trained with.
    """

    coarse_thresh: Share = 0.2
    minimal_area: Annotated[int, Range(0)] = 225
    mask_coff: Positive = 0.005
    iou_thresh: float = 0.8
    mask_prompt: Literal['3d', '4d'] = '3d'

    def __post_init__(self) -> None:
        check_fields(self)

    def as_dict(self) -> dict:
        return asdict(self)


def refine(coarse: ScoreMap, features: SAMFeatures, decoder: SAMDecoder, options: Refinement) -> ScoreMap:
    """Redraws the regions of an image by SAM. Returns the coarse scores if none could be redrawn.

    Args:
        coarse: The scores of the first stage.
        features: SAM's features of the image, with the embedding.
        decoder: SAM's decoder.
        options: Of the second stage.
    """
    half, labels = _at_half_size(coarse, options)
    logits: dict[int, Tensor] = {}
    failed = torch.zeros(labels.shape, dtype=torch.bool, device=coarse.device)
    for regions in find_regions(*_read(half, labels), options.minimal_area):
        prompts = region_prompts(regions, half[regions.label], coarse.size, decoder, options)
        masks, quality = decoder(features.embedding, *prompts)
        kept = quality > options.iou_thresh
        number = to_device(regions.map, str(coarse.device))
        failed |= (number >= 0) & ~kept[number.clamp(min=0).long()]
        if kept.device.type == 'cpu':
            # A GPU would be waited for: there the other masks are computed as well, and count for nothing.
            masks, kept = masks[kept], kept[kept]
        if len(masks):
            logits[regions.label] = _highest(masks, kept, features, decoder, coarse.size)
    if not logits:
        return coarse
    return RefinedScores(coarse, *_refined_maps(coarse, logits), _nearest(failed, coarse.size))


def _at_half_size(coarse: ScoreMap, options: Refinement) -> tuple[Tensor, Tensor]:
    """(C, h, w) scores and (h, w) labels at half the size of the image, -1 for uncertain pixels and classes."""
    size = tuple(max(1, side // 2) for side in coarse.size)
    source = Resized(CoarseScores(coarse), size)
    scores = torch.empty(source.shape, device=coarse.device)
    # A row at half size is made from two rows of the image.
    for top, bottom in band_ranges(2 * coarse.channels, size, coarse.device):
        scores[:, top:bottom] = source.rows(top, bottom)
    labels = _nearest(coarse.labels(), size)
    if options.coarse_thresh > 0:
        # Also the pixels of a class whose score is below it everywhere.
        unsure = (scores.amax(0) < options.coarse_thresh) | (scores.amax((1, 2)) < options.coarse_thresh)[labels]
        labels = labels.masked_fill(unsure, -1)
    return scores, labels


def _read(scores: Tensor, labels: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """(h, w) labels, and the score of each pixel's own class. Args: as :func:`_at_half_size` returns them.

    This is the one time that a GPU is waited for: how many prompts SAM gets depends on the regions.
    """
    own = scores.gather(0, labels.clamp(min=0)[None])[0]
    read = torch.stack((labels.to(own), own)).cpu().numpy()
    return read[0].astype(int), read[1]


def region_prompts(
    regions: Regions, score: Tensor, size: tuple[int, int], decoder: SAMDecoder, options: Refinement
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns points, boxes and mask for the decoder.

    Args:
        regions: The regions of a class.
        score: (h, w) its score at half size.
        size: Height and width of the image.
        decoder: SAM's decoder.
        options: Factor and form of the mask.
    """
    model = decoder.model
    height, width = model.frame(tuple(score.shape))
    scale = [width / score.shape[1], height / score.shape[0]]
    prompts = np.concatenate((regions.points, regions.boxes), 1) * (3 * scale)
    points, boxes = to_device(prompts.astype(np.float32), str(score.device)).split((2, 4), 1)
    side = decoder.mask_side
    mask = F.interpolate(score[None, None], model.frame(size, side), mode='bilinear')
    mask = torch.where(mask > options.coarse_thresh, options.mask_coff * mask, 0)
    mask = F.pad(mask, (0, side - mask.shape[3], 0, side - mask.shape[2]))
    return points, boxes, mask[0] if options.mask_prompt == '3d' else mask


def _highest(masks: Tensor, kept: Tensor, features: SAMFeatures, decoder: SAMDecoder, size: tuple[int, int]) -> Tensor:
    """(n, s, s) logits of a class's masks, (n,) whether they are kept -> (H, W) the highest at each pixel of the image.

    One mask at a time is resized to the square input, cropped to the image, and resized to its size.
    """
    highest = None
    for mask, keep in zip(masks, kept, strict=True):
        full = F.interpolate(mask[None, None], (decoder.model.image_size,) * 2, mode='bilinear')
        full = full[..., : features.frame[0], : features.frame[1]]
        for target in (features.image_size, size):
            full = full if full.shape[2:] == target else F.interpolate(full, target, mode='bilinear')
        full = full[0, 0].masked_fill_(~keep, float('-inf'))
        highest = full if highest is None else torch.maximum(highest, full)
    return highest


def _refined_maps(coarse: ScoreMap, logits: dict[int, Tensor]) -> tuple[Tensor, Tensor]:
    """Returns the classes with refined masks, and their scores: coarse score times probability inside the mask."""
    classes = to_device(np.array(sorted(logits)), str(coarse.device))
    maps = torch.stack([logits[label] for label in sorted(logits)])
    source = CoarseScores(coarse)
    for top, bottom in coarse.ranges():
        band = maps[:, top:bottom]
        band.copy_(torch.where(band > 0, band.sigmoid() * source.rows(top, bottom)[classes], 0))
    return classes, maps


def _nearest(values: Tensor, size: tuple[int, int]) -> Tensor:
    """Resizes (h, w) values to another size without mixing them."""
    return F.interpolate(values[None, None].float(), size, mode='nearest')[0, 0].to(values.dtype)
