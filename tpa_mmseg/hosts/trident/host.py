"""Trident: windows of CLIP are mixed by DINO's similarities, spliced, and mixed again by SAM's correlation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import torch
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from ...core import ScoreMap
from ...encoders import Encoder
from ...errors import TPAError
from ...layers.resize import next_multiple, resize
from ...options import options_of
from ...sam.decoder import SAMDecoder
from ...sam.encoder import SAMEncoder, SAMFeatures
from ..batch import original_size
from ..proxy_attention import mean_cosine, proxy_attention
from ..proxy_host import ProxyHost
from ..windows import Cut, as_map, run_on_windows
from .correlation import correlate
from .original_image import read_original, resize_pixels
from .refinement import Refinement, refine

#: DINO ViT-B/16, the only proxy of the original.
DINO = {'type': 'TimmEncoder', 'model': 'vit_base_patch16_224.dino'}


@MODELS.register_module()
class Trident(ProxyHost):
    """Mixes windows by proxy attention, splices them, and mixes the result by SAM's correlation.

    SAM's input is the original image, which is read again from ``img_path`` as in the original implementation. If there
    is no such file (or its size is not ``ori_shape``), it is the network's input, resized to the original size.

    Args:
        proxy: Config of the encoder whose similarities mix CLIP's values within windows. Its mean cosine is taken over
            all windows of the image.
        sam: ``dict(model=, checkpoint=, precision=, compile=)``, see :class:`SAMEncoder`.
        cos_fac: Patches whose values in SAM have a cosine of at most ``cos_fac`` times the mean do not mix.
        refine_neg_cos: Keep such thresholds if they are negative, instead of taking 0.6.
        halves: Run SAM on the left and the right half of the image separately (Cityscapes).
        refinement: Options of :class:`Refinement`, with which SAM redraws the regions of the coarse prediction; None
            to keep the coarse prediction.
        slide_crop: Side of a window, a multiple of CLIP's and the proxy's patch.
        slide_stride: Step between windows, a multiple of CLIP's patch.
        **kwargs: As for :class:`ProxyHost`.
    """

    scores_single_windows = False

    def __init__(
        self,
        clip: dict,
        proxy: dict | Encoder = DINO,
        sam: Annotated[dict, SAMEncoder] | None = None,
        cos_fac: float = 1.2,
        refine_neg_cos: bool = True,
        halves: bool = False,
        refinement: Annotated[dict, Refinement] | None = None,
        slide_crop: int = 336,
        slide_stride: int = 224,
        **kwargs,
    ) -> None:
        super().__init__(clip, proxy, slide_crop=slide_crop, slide_stride=slide_stride, **kwargs)
        self._check_windows()
        self.sam = SAMEncoder.of(sam)
        self.cos_fac, self.refine_neg_cos, self.halves = float(cos_fac), bool(refine_neg_cos), bool(halves)
        self.refinement = None if refinement is None else options_of(Refinement, refinement, 'refinement')
        self.decoder = None if refinement is None else SAMDecoder(self.sam.model, self.sam.path)
        if self.refinement and self.rule.area_thd is not None:
            raise TPAError('area_thd cannot be combined with refinement in Trident: remove one of them.')

    def _check_windows(self) -> None:
        """Raises TPAError if windows are not aligned with CLIP's patch grid: they could not be spliced."""
        patch, proxy = self.tower.patch_size, self.proxy.patch
        if self.sliding.pad_to != 1:
            raise TPAError('Trident splices windows and cannot pad them: remove padding.')
        if self.sliding.whole:
            return
        if self.sliding.crop % patch or self.sliding.crop % proxy:
            raise TPAError(
                f"slide_crop must be a multiple of CLIP's patch, {patch}, and the proxy's, {proxy}, "
                f'not {self.sliding.crop}.'
            )
        if self.sliding.stride % patch:
            raise TPAError(f"slide_stride must be a multiple of CLIP's patch, {patch}, not {self.sliding.stride}.")

    def score_windows(self, windows: list[list[Tensor]]) -> list[list[Tensor]]:
        """Runs CLIP and the proxy. Returns the output of :meth:`window_maps` for each window, not scores yet."""
        return run_on_windows(self.window_maps, windows, self.windows_per_call)

    def _score_map(self, cut: Cut, maps: list[Tensor]) -> ScoreMap:
        """The class probabilities of one image. Args: cut; maps: of its windows, from :meth:`window_maps`."""
        image, sample = cut.image, cut.sample
        canvas = self.splice(maps, self.fitted_size(tuple(image.shape[-2:])))
        size = original_size(image, sample)
        pixels = self.sam_image(image, sample, size)
        refining = self.refinement is not None
        parts = [self.sam(part, embed=refining and not self.halves) for part in self._sam_views(pixels)]
        cosines = self.cosines(self.features_of(canvas, parts))
        alarms = self.check_scores([cosines], sample)
        coarse = self.decode(list(cosines), image, size)
        coarse.alarms.extend(alarms)
        if not refining:
            return coarse
        # Prompts are about the whole image.
        whole = self.sam(pixels, embed=True) if self.halves else parts[0]
        return refine(coarse, whole, self.decoder, self.refinement)

    def fit(self, image: Tensor) -> Tensor:
        """Resizes a (3, H, W) image to whole patches, and to at least one window, unless its patches are whole."""
        size = tuple(image.shape[-2:])
        target = self.fitted_size(size)
        return image if target == size else resize(image[None].float(), target)[0]

    def fitted_size(self, size: tuple[int, int]) -> tuple[int, int]:
        patch = self.tower.patch_size
        if not any(side % patch for side in size):
            return size
        scale = next_multiple(max(size), patch) / max(size)
        return tuple(max(next_multiple(int(side * scale), patch), self.sliding.crop) for side in size)

    def maps_and_proxy(self, images: Tensor) -> Tensor:
        return self.window_maps(images)

    def without_proxy(self, window: Tensor) -> Tensor:
        return window  # windows are mixed by the proxy's similarities when they are spliced

    def window_maps(self, images: Tensor) -> Tensor:
        """(B, 3, h, w) windows -> (B, D + P, gh, gw): CLIP's values on the proxy's grid, and the proxy's features."""
        with self.tower.autocast():
            proxy = self.proxy_features(images)
            return torch.cat((self.values(images, tuple(proxy.shape[-2:])), proxy), 1)

    def splice(self, maps: list[Tensor], size: tuple[int, int]) -> Tensor:
        """Mixes the values of each window and averages overlapping windows.

        Args:
            maps: Of each window of an image, from :meth:`window_maps`.
            size: Height and width of the image that was cut.

        Returns:
            (D, r H / patch, r W / patch) output of CLIP's last attention. The integer r is the number of patches of the
            proxy per patch of CLIP, at least one.
        """
        block, patch = self.tower.blocks[-1], self.tower.patch_size
        values, proxy = torch.stack(maps).split([block.attn.embed_dim, self.proxy.dim], 1)
        grid = tuple(proxy.shape[-2:])
        threshold = (self.beta * mean_cosine(proxy).mean()).expand(len(proxy))
        with self.tower.autocast():
            tokens = block.attn.out_proj(proxy_attention(values, proxy, threshold, self.gamma))
        down, across = (self.sliding.spans(side) for side in size)
        window = (down[0].padded // patch, across[0].padded // patch)
        ratio = max(1, round(grid[1] / window[1]))
        outputs = iter(resize(as_map(tokens.float(), grid), (ratio * window[0], ratio * window[1])))
        canvas = tokens.new_zeros(tokens.shape[-1], *(ratio * side // patch for side in size), dtype=torch.float32)
        visits = torch.zeros_like(canvas[:1])
        for y in down:
            for x in across:
                area = (..., *(slice(ratio * s.start // patch, ratio * s.stop // patch) for s in (y, x)))
                canvas[area] += next(outputs)
                visits[area] += 1
        return canvas / visits

    def sam_image(self, image: Tensor, sample: SegDataSample | None, size: tuple[int, int]) -> np.ndarray:
        """Returns the (H, W, 3) uint8 RGB input of SAM: the original image, enlarged to whole patches of CLIP.

        Args:
            image: (3, h, w) network input.
            sample: Its sample.
            size: Height and width of the original image.
        """
        pixels = read_original(sample, size)
        if pixels is None:
            unit = self.pixels(image).nan_to_num().clamp(0, 1).permute(1, 2, 0)
            pixels = resize_pixels(unit.mul(255).round().byte().cpu().numpy(), size)
        return resize_pixels(pixels, tuple(next_multiple(side, self.tower.patch_size) for side in size))

    def _sam_views(self, pixels: np.ndarray) -> list[np.ndarray]:
        """Returns the inputs of SAM: the image, or its halves."""
        middle = pixels.shape[1] // 2
        halves = (pixels[:, :middle], pixels[:, middle:])
        return [np.ascontiguousarray(half) for half in halves] if self.halves else [pixels]

    def features_of(self, canvas: Tensor, parts: Sequence[SAMFeatures]) -> Tensor:
        """Mixes the canvas by SAM's correlation and projects it to the space of the text.

        Args:
            canvas: (D, h, w) from :meth:`splice`.
            parts: SAM's features of the image, or of its left and right half.

        Returns:
            (1, E, gh, gw) features, not normalized.
        """
        middle = canvas.shape[2] // 2
        pieces = [canvas[..., :middle], canvas[..., middle:]] if len(parts) == 2 else [canvas]
        mixed = [
            correlate(part, piece, self.cos_fac, self.refine_neg_cos) for part, piece in zip(parts, pieces, strict=True)
        ]
        whole = torch.cat(mixed, 2)
        with self.tower.autocast():
            return as_map(self.tower.project(whole.flatten(1).T[None]), tuple(whole.shape[1:]))

    def features(self, images: Tensor) -> Tensor:
        raise TPAError('Trident has no features of single windows: call score_maps.')

    def stitch(self, maps: list[Tensor], network: tuple[int, int], size: tuple[int, int]) -> Tensor:
        return maps[0]  # windows are spliced before they are compared with text

    def settings(self) -> dict:
        return {
            **super().settings(),
            'sam_precision': self.sam.precision,
            'cos_fac': self.cos_fac,
            'refine_neg_cos': self.refine_neg_cos,
            'halves': self.halves,
            # The threshold changes which regions are redrawn.
            'refinement': self.refinement and {**self.refinement.as_dict(), 'prob_thd': self.rule.prob_thd},
        }
