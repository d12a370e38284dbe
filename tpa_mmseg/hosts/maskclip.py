"""MaskCLIP: the values of CLIP's last block, with prompt denoising and key smoothing."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from torch import Tensor

from ..clip.tower import heads, merge_heads
from ..core import QueryScores, Resized, RowSource, ScoreMap
from ..errors import TPAError
from .last_block import LastBlockHost
from .windows import as_map

# Both refinements read softmax scores at CLIP's own scale; a query that is left out gets this cosine.
_SCALE = 100.0
_LEFT_OUT = -100.0
# The best score of a pixel without a positive one is raised to this.
_LIFTED = 1e-6


@MODELS.register_module()
class MaskCLIP(LastBlockHost):
    """Every token keeps its own value in the last block.

    Args:
        pd_thresh: Prompt denoising: queries whose softmax score stays below it in the whole image are dropped. The
            paper has 0.5; 0 disables it.
        ks_thresh: Key smoothing: patches whose best softmax score is below it take the scores of patches with similar
            keys. 1 smooths all patches; 0 disables it. Keys are normalized over patches, as in the original.
        **kwargs: As for :class:`LastBlockHost`.
    """

    def __init__(
        self,
        clip: dict,
        attention: str = 'identity',
        pd_thresh: float = 0.0,
        ks_thresh: float = 0.0,
        logit_scale: float = 100.0,
        slide_crop: int = 0,
        resize_via_input: bool = True,
        position: str = 'size',
        **kwargs,
    ) -> None:
        super().__init__(
            clip,
            attention,
            logit_scale=logit_scale,
            slide_crop=slide_crop,
            resize_via_input=resize_via_input,
            position=position,
            **kwargs,
        )
        if ks_thresh and self.last_n_layers != 1:
            raise TPAError('Key smoothing needs the keys of the last block: set last_n_layers to 1, or ks_thresh to 0.')
        if ks_thresh and self.plugin is not None:
            raise TPAError('Key smoothing cannot be combined with a plug-in: set ks_thresh to 0, or remove plugin.')
        self.pd_thresh, self.ks_thresh = float(pd_thresh), float(ks_thresh)

    def patch_scores(self, images: Tensor) -> Tensor:
        """(B, Q, gh, gw) cosines; with key smoothing the D channels of the keys follow them."""
        if not self.ks_thresh:
            return super().patch_scores(images)
        grid, block = self.tower.grid(tuple(images.shape[-2:])), self.tower.blocks[-1]
        with self.tower.autocast():
            tokens = self.tower.trunk(images)
            features = self.tower.project(self.last_block(block, tokens, grid))
            keys = merge_heads(block, heads(block, tokens, 'k')[1])
        return torch.cat((self.cosines(as_map(features[:, 1:], grid)), as_map(keys[:, 1:], grid).float()), 1)

    def decode(self, maps: list[Tensor], image: Tensor, size: tuple[int, int]) -> ScoreMap:
        queries = len(self.text_features)
        scores, keys = [m[:queries] for m in maps], [m[queries:] for m in maps]
        if self.pd_thresh:
            scores = denoise(scores, self.pd_thresh)
        if not self.ks_thresh:
            return super().decode(scores, image, size)
        smoothed = [smooth(s, k, self.ks_thresh) for s, k in zip(scores, keys, strict=True)]
        source = Logarithm(Resized(self.assemble(smoothed, image, size), size))
        return QueryScores(source, size, self.query_to_class, self.rule)

    def settings(self) -> dict:
        return {**super().settings(), 'pd_thresh': self.pd_thresh, 'ks_thresh': self.ks_thresh}


def denoise(maps: list[Tensor], threshold: float) -> list[Tensor]:
    """Prompt denoising of an image. Args: maps: (Q, h, w) cosines of its windows; threshold: of the best score."""
    best = torch.stack([(_SCALE * scores).softmax(0).amax((1, 2)) for scores in maps]).amax(0)
    return [scores.masked_fill((best < threshold)[:, None, None], _LEFT_OUT) for scores in maps]


def smooth(scores: Tensor, keys: Tensor, threshold: float) -> Tensor:
    """Key smoothing of a window.

    Args:
        scores: (Q, h, w) cosines.
        keys: (D, h, w) keys.
        threshold: Patches whose best softmax score is below it are smoothed.

    Returns:
        (Q, h, w) softmax scores; smoothed ones need not be positive or sum to one.
    """
    probabilities = (_SCALE * scores).softmax(0)
    unit = F.normalize(keys.flatten(1), dim=1)
    # (k k^T) p without the matrix of all pairs of patches.
    spread = (probabilities.flatten(1) @ unit.T @ unit).view_as(probabilities)
    return torch.where(probabilities.amax(0) < threshold, spread, probabilities)


class Logarithm:
    """The logarithm of a map of scores, band by band, as a :class:`~tpa_mmseg.core.RowSource`."""

    def __init__(self, source: RowSource) -> None:
        self.source = source

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.source.shape

    @property
    def device(self) -> torch.device:
        return self.source.device

    @property
    def nbytes(self) -> int:
        return self.source.nbytes

    def release(self) -> None:
        self.source.release()

    @property
    def most_channels(self) -> None:
        return None

    def channels(self, first: int, last: int) -> None:
        """A score is raised by what the best of all channels lacks: there are no parts."""

    def rows(self, top: int, bottom: int) -> Tensor:
        scores = self.source.rows(top, bottom)
        # Smoothing may leave a pixel without a positive score: its best one is raised so that it stays the best.
        lifted = scores + (_LIFTED - scores.amax(0)).clamp_(min=0)
        return lifted.clamp_(min=torch.finfo(torch.float32).tiny).log_()
