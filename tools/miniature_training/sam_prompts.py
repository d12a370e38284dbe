"""The questions that the tiny SAM learns from: points, boxes and masks about the regions of a scene."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from numpy.random import Generator
from torch import Tensor

from tpa_mmseg.hosts.trident.refinement import Refinement, region_prompts
from tpa_mmseg.hosts.trident.regions import Regions, find_regions
from tpa_mmseg.sam.decoder import SAMDecoder
from tpa_mmseg.sam.model import SAMModel

#: Ways to ask. The last two add a mask as Trident's refinement does, in either of its forms.
KINDS = ('point', 'box', 'point+box', '4d', '3d')

# Side of the squares, in pixels, over which a coarse prediction is blurred: a patch of the tiny CLIP.
_COARSE = 8


@dataclass(frozen=True)
class Prompts:
    """n prompts about one image, and the masks that answer them.

    Attributes:
        targets: (n, s, s) float, 1 in the region; s is the side of SAM's masks.
        points: (n, k, 2) x and y in pixels of the square input, None where there are only boxes.
        inside: (n, k) 1 for points inside of the region, 0 for points outside.
        boxes: (n, 4) left, top, right, bottom, or None.
        mask: (1, s, s) or (1, 1, s, s) shared by all prompts, (n, 1, s, s), or None.
    """

    targets: Tensor
    points: Tensor | None
    inside: Tensor | None
    boxes: Tensor | None
    mask: Tensor | None

    @property
    def ambiguous(self) -> bool:
        """Whether a single point is all there is, so that several masks may be meant."""
        return self.boxes is None and self.points.shape[1] == 1

    def answer(self, decoder: SAMDecoder, embedding: Tensor) -> tuple[Tensor, Tensor]:
        """The decoder's (n, 4, s, s) logits and (n, 4) qualities: one mask for clear prompts, three for ambiguous ones.

        Args:
            decoder: SAM's decoder.
            embedding: (1, prompt_dim, g, g) of the image.
        """
        points = None if self.points is None else (self.points, self.inside)
        sparse, dense = decoder.prompt_encoder(points, self.boxes, self.mask)
        position = decoder.prompt_encoder.get_dense_pe()
        return decoder.mask_decoder.predict_masks(embedding, position, sparse, dense)

    def corrected(self, logits: Tensor, model: SAMModel, rng: Generator) -> Prompts:
        """The next round: the (n, s, s) logits of the answer as a mask, and a point where the answer was wrong."""
        wrong = ((logits > 0) != (self.targets > 0)).flatten(1)
        # Where nothing is wrong any point will do.
        odds = wrong.double() + 1e-6
        steps = torch.from_numpy(rng.random((len(odds), 1))) * odds.sum(1, keepdim=True)
        chosen = torch.searchsorted(odds.cumsum(1), steps).clamp(max=odds.shape[1] - 1)
        side = logits.shape[-1]
        points = (
            torch.stack((chosen % side, chosen // side), 2) * (model.image_size / side) + model.image_size / side / 2
        )
        inside = self.targets.flatten(1).gather(1, chosen)
        if self.points is not None:
            points, inside = torch.cat((self.points, points), 1), torch.cat((self.inside, inside), 1)
        mask = logits.detach().clamp(-32, 32)[:, None]
        return replace(self, points=points.float(), inside=inside.float(), mask=mask)


@dataclass(frozen=True)
class Asking:
    """How prompts are drawn.

    Args:
        minimal_area: Connected regions of fewer pixels are not asked about.
        most: Prompts per image.
        jitter: Deviation of a box's borders, as a share of its width and height.
    """

    minimal_area: int = 60
    most: int = 4
    jitter: float = 0.1


def ask(regions: np.ndarray, kind: str, decoder: SAMDecoder, rng: Generator, asking: Asking) -> Iterator[Prompts]:
    """Prompts of one kind about random regions of a scene.

    Args:
        regions: (H, W) uint8 number of the surface or thing that a pixel belongs to.
        kind: One of :data:`KINDS`.
        decoder: Who is asked.
        rng: Draws regions, points, boxes and masks.
        asking: How.
    """
    # The pixel with the highest score becomes the point: any pixel, if scores are noise.
    noise = rng.random((int(regions.max()) + 1, *regions.shape), np.float32)
    own = np.take_along_axis(noise, regions[None].astype(int), 0)[0]
    found = list(find_regions(regions, own, asking.minimal_area))
    order = [found[index] for index in rng.permutation(len(found))]
    # Trident asks about all regions of a class with one mask of that class; here any surfaces make up a class.
    size = len(order) if kind not in ('3d', '4d') else int(rng.integers(1, 3))
    left = asking.most
    for start in range(0, len(order), max(1, size)):
        group = order[start : start + size]
        prompts = _about(group, kind, decoder, rng, asking.jitter, left)
        yield prompts
        left -= len(prompts.targets)
        if left <= 0:
            return


def _about(group: list[Regions], kind: str, decoder: SAMDecoder, rng: Generator, jitter: float, most: int) -> Prompts:
    """At most ``most`` prompts about a few surfaces, with one mask for all of them where the kind has a mask."""
    model = decoder.model
    score = torch.from_numpy(coarse_score(sum(surface.map >= 0 for surface in group) > 0, rng))
    options = Refinement(mask_prompt=kind) if kind in ('3d', '4d') else Refinement()
    asked = [region_prompts(surface, score, tuple(score.shape), decoder, options) for surface in group]
    masks = [surface.map == index for surface in group for index in range(len(surface.points))]
    chosen = rng.permutation(len(masks))[:most]
    points = torch.cat([points for points, _, _ in asked])[chosen]
    boxes = shaken(torch.cat([boxes for _, boxes, _ in asked])[chosen], model.frame(tuple(score.shape)), jitter, rng)
    return Prompts(
        targets=small_masks(np.stack([masks[index] for index in chosen]), model, decoder.mask_side),
        points=None if kind == 'box' else points[:, None],
        inside=None if kind == 'box' else torch.ones(len(points), 1),
        boxes=None if kind == 'point' else boxes,
        mask=asked[0][2] if kind in ('3d', '4d') else None,
    )


def small_masks(masks: np.ndarray, model: SAMModel, side: int) -> Tensor:
    """(n, H, W) boolean masks as SAM draws them: (n, side, side) float, padded at the right and below."""
    target = model.frame(masks.shape[1:], side)
    small = F.interpolate(torch.from_numpy(masks)[None].float(), target, mode='area')[0] > 0.5
    return F.pad(small.float(), (0, side - target[1], 0, side - target[0]))


def patch_owners(regions: np.ndarray, grid: tuple[int, int], pure: float = 0.8) -> Tensor:
    """The region that each patch belongs to, -1 where none has more than the share ``pure`` of it.

    Args:
        regions: (H, W) uint8 number of the surface or thing that a pixel belongs to.
        grid: Height and width in patches.
        pure: That share.
    """
    each = F.one_hot(torch.from_numpy(regions).long()).permute(2, 0, 1)
    share, owner = F.interpolate(each[None].float(), grid, mode='area')[0].max(0)
    return owner.masked_fill(share <= pure, -1)


def shaken(boxes: Tensor, frame: tuple[int, int], jitter: float, rng: Generator) -> Tensor:
    """(n, 4) boxes whose borders moved by a normal share of their sides, within the image's frame."""
    sides = (boxes[:, 2:] - boxes[:, :2]).repeat(1, 2)
    moved = boxes + jitter * sides * torch.from_numpy(rng.standard_normal(boxes.shape).astype(np.float32))
    height, width = frame
    return torch.minimum(moved.clamp(min=0), torch.tensor([width, height] * 2) - 1.0)


def coarse_score(mask: np.ndarray, rng: Generator) -> np.ndarray:
    """(H, W) boolean mask -> float32 scores as a coarse prediction has them: blurred over patches, unsure and noisy."""
    grid = tuple(max(1, side // _COARSE) for side in mask.shape)
    blurred = F.interpolate(torch.from_numpy(mask)[None, None].float(), grid, mode='area')
    noisy = blurred + torch.from_numpy(rng.normal(0, 0.2, grid).astype(np.float32))
    sure = noisy.clamp(0, 1) * rng.uniform(0.4, 1)
    return F.interpolate(sure, mask.shape, mode='bilinear')[0, 0].numpy()
