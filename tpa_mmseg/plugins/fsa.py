"""FSA: a host's predictions are fed back into its attention, so that patches with similar predictions attend.

Written from the formulas; the original repository has no license and nothing of it is used here. The original supports
ProxyCLIP only. Inside SCLIP, ClearCLIP, MaskCLIP and the other hosts that change CLIP's last block, this is **our
reading** of the paper: A_p is the host's own attention, head by head and with its class token, and everything else is
as in ProxyCLIP, including the scales.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from mmseg.registry import MODELS
from torch import Tensor

from ..errors import TPAError
from ..hosts.block_parts import BlockParts, Plugin
from ..hosts.clip_host import CLIPHost
from ..options import NotNegative, Positive, Share

# Floats of the rows of B that exist at the same time.
_CHUNK_ELEMENTS = 1 << 22
_EPS = 1e-10


@MODELS.register_module()
class FSA(Plugin):
    """Feedback self-adaptive attention: ``A = (B A_p + A_p B + B) / 3`` instead of the host's attention A_p.

    B lets a patch attend to the patches with the most similar predictions. A class token keeps its own value in B.

    Args:
        sharpness: Lambda in B. The original has 3.0; 2.3 with CLIP ViT-H/14; 4.5 with MAE as the proxy.
        keep: A patch attends to its most similar patches, up to this share of a softmax over similarities.
        patch_scale: Factor of the cosines of the host's features with the text.
        uniform_scale: Factor of the cosines under uniform attention, which are subtracted from them.
    """

    def __init__(
        self,
        sharpness: Positive = 3.0,
        keep: Share = 0.45,
        patch_scale: NotNegative = 20.0,
        uniform_scale: NotNegative = 35.0,
    ) -> None:
        if not 0 <= keep <= 1:
            raise TPAError(f'FSA.keep must be between 0 and 1, not {keep!r}.')
        self.sharpness, self.keep = float(sharpness), float(keep)
        self.patch_scale, self.uniform_scale = float(patch_scale), float(uniform_scale)

    def features(self, host: CLIPHost, images: Tensor, block: BlockParts | None = None) -> Tensor:
        return self.refine(block or host.open_block(images), host.cosines)

    def refine(self, block: BlockParts, cosines: Callable[[Tensor], Tensor]) -> Tensor:
        """Computes the features of a host with FSA inside.

        Args:
            block: Its last block.
            cosines: (B, E, h, w) features -> (B, Q, h, w) cosines with the text.

        Returns:
            (B, E, h, w) features, not normalized.
        """
        values = block.values
        mixed = block.mix(values)
        scores = self.isolated_scores(block, mixed, cosines)
        # B (A_p v) and B v by one product, then A_p (B v): no product of two attention matrices is computed.
        of_mixed, of_values = self._attend(block, scores, torch.cat((mixed, values), 3)).chunk(2, 3)
        return block.finish((of_mixed + block.mix(of_values.to(values.dtype)) + of_values) / 3)

    def isolated_scores(self, block: BlockParts, mixed: Tensor, cosines: Callable[[Tensor], Tensor]) -> Tensor:
        """Returns the scores of the host minus those of uniform attention.

        Args:
            block, cosines: As for :meth:`refine`.
            mixed: (B, heads, T, d) values, mixed by the host.

        Returns:
            (B, h w, Q) float32 scores.
        """
        uniform = block.values[:, :, block.patches].mean(2, keepdim=True).expand_as(block.values)
        own, without = (cosines(block.finish(each)).flatten(2).transpose(1, 2) for each in (mixed, uniform))
        return self.patch_scale * own - self.uniform_scale * without

    def _attend(self, block: BlockParts, scores: Tensor, values: Tensor) -> Tensor:
        """Applies B to (B, heads, T, d) values; tokens before the patches keep theirs."""
        out = values.float().clone()
        # The pruning is hard, so everything is computed in float32, whatever the precision of the networks.
        with torch.autocast(values.device.type, enabled=False):
            for window, result in zip(scores, out, strict=True):
                patches = result[:, block.patches]
                probabilities = window.softmax(1)
                parts = probabilities.split(max(1, _CHUNK_ELEMENTS // len(window)))
                mixed = [self.attention(rows, probabilities) @ patches for rows in parts]
                result[:, block.patches] = torch.cat(mixed, 1)
        return out

    def attention(self, rows: Tensor, probabilities: Tensor) -> Tensor:
        """Computes some rows of B.

        Args:
            rows: (n, Q) probabilities of the patches that attend.
            probabilities: (N, Q) probabilities of all patches.

        Returns:
            (n, N) weights that sum to one.
        """
        similarity = 1 / (1 + divergence(rows, probabilities))
        weights = similarity * (self.sharpness * similarity).exp()
        return weights.masked_fill(~most_similar(similarity, self.keep), float('-inf')).softmax(1)

    def settings(self) -> dict:
        names = ('sharpness', 'keep', 'patch_scale', 'uniform_scale')
        return {name: getattr(self, name) for name in names}


def divergence(rows: Tensor, others: Tensor) -> Tensor:
    """Kullback-Leibler divergence of n distributions from N others: (n, N), not below zero.

    ``sum p_i log p_i - p_i · log p_j``: one product, and nothing of size n x N x Q.

    Args:
        rows: (n, Q) probabilities.
        others: (N, Q) probabilities.
    """
    own = (rows * (rows + _EPS).log()).sum(1, keepdim=True)
    return (own - rows @ (others + _EPS).log().T).clamp_(min=0)


def most_similar(similarity: Tensor, keep: float) -> Tensor:
    """Selects the patches that a patch attends to: (n, N) similarities -> (n, N) bool.

    From the most similar down, as long as their softmax over the row sums to at most ``keep``; the first one always.
    """
    order = similarity.sort(dim=1, descending=True, stable=True)
    kept = order.values.softmax(1).cumsum(1) <= keep
    kept[:, 0] = True
    return torch.zeros_like(kept).scatter_(1, order.indices, kept)
