"""ResCLIP: CLIP's last block uses the attention of earlier blocks, and feedback of its first prediction.

Written from the formulas; the original repository has no license and nothing of it is used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import torch
from mmseg.registry import MODELS
from torch import Tensor

from ..clip.tower import CLIPTower, heads, run_block
from ..errors import TPAError
from ..hosts.block_parts import BlockParts, Plugin
from ..hosts.clip_host import CLIPHost
from ..hosts.last_block import LastBlockHost
from ..layers.attention import attend
from ..options import Positive, Range, Share, check_fields, options_of
from .resclip_feedback import Feedback

# The attentions of hosts that are a softmax of scores, which feedback can change.
_WITH_SCORES = ('vanilla', 'qq', 'kk', 'csa', 'naclip')


@dataclass(frozen=True)
class CrossCorrelation:
    """Residual cross-correlation attention (RCS): ``A = scale ((1 - weight) A_h + weight A_c)``.

    A_h is the host's attention, A_c the mean of the attention of earlier blocks, head by head. Rows are not normalized.

    Args:
        scale: tau_r.
        weight: lambda_r.
        blocks: The earlier blocks, counted from 0. The original has these four for every backbone.
    """

    scale: Positive = 2.0
    weight: Share = 0.3
    blocks: tuple[Annotated[int, Range(0)], ...] = (5, 6, 7, 8)

    def __post_init__(self) -> None:
        check_fields(self)


@MODELS.register_module()
class ResCLIP(Plugin):
    """RCS and SFR, each of which can be disabled, inside CLIP, SCLIP, ClearCLIP or NACLIP.

    In the original the switches have no effect, so that both are always on; here they work.

    Args:
        rcs: Options of :class:`CrossCorrelation`; False disables it.
        sfr: Options of :class:`~tpa_mmseg.plugins.resclip_feedback.Feedback`, semantic feedback refinement: the last
            block runs a second time, and patches with the same label in the first prediction attend more to each
            other. False disables it.
    """

    def __init__(
        self, rcs: Annotated[dict, CrossCorrelation] | bool = True, sfr: Annotated[dict, Feedback] | bool = True
    ) -> None:
        self.rcs = None if rcs is False else _options(CrossCorrelation, 'rcs', rcs)
        self.sfr = None if sfr is False else _options(Feedback, 'sfr', sfr)

    def check(self, host: CLIPHost) -> None:
        if not isinstance(host, LastBlockHost) or host.attention not in _WITH_SCORES:
            raise TPAError(
                f'ResCLIP needs a host with attention scores ({", ".join(_WITH_SCORES)}), but {type(host).__name__} '
                'has none: choose another host, or remove plugin.'
            )
        last = len(host.tower.blocks) - 1
        if self.rcs is not None and not (self.rcs.blocks and all(0 <= index < last for index in self.rcs.blocks)):
            raise TPAError(
                f'rcs.blocks must be blocks before the last, 0 to {last - 1} in this CLIP, not {list(self.rcs.blocks)}.'
            )

    def features(self, host: LastBlockHost, images: Tensor, block: BlockParts | None = None) -> Tensor:
        tokens, earlier = self._trunk(host.tower, images)
        block = host.open_block(images, tokens)
        cross = None if self.rcs is None else cross_correlation(earlier, block.values)
        features = block.finish(self._mix(block, cross))
        if self.sfr is None:
            return features
        # Labels have no gradient.
        with torch.no_grad(), torch.autocast(images.device.type, enabled=False):
            cosines, patch = host.cosines(features), host.tower.patch_size
            semantic = self.sfr.attention(cosines, images.float(), host.logit_scale, patch)
        return block.finish(self._mix(block, cross, semantic))

    def _trunk(self, tower: CLIPTower, images: Tensor) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """(B, T, D) tokens that enter the last block; queries and keys of the earlier blocks that RCS reads."""
        read = () if self.rcs is None else self.rcs.blocks
        tokens, kept = tower.embed(images), []
        for index, block in enumerate(tower.blocks[:-1]):
            if index in read:
                kept.append(heads(block, tokens)[:2])
            tokens = run_block(block, tokens)
        return tokens, kept

    def _mix(self, block: BlockParts, cross: Tensor | None, semantic: Tensor | None = None) -> Tensor:
        """Mixes the values of the last block.

        Args:
            block: The block.
            cross: (B, heads, T, d) values mixed by A_c, None without RCS.
            semantic: (B, 1, T, T) feedback S, None without SFR.
        """
        changes = {} if semantic is None else self.sfr.changes(semantic, block.values.shape[-1])
        mixed = block.mix(block.values, **changes)
        if cross is None:
            return mixed
        return self.rcs.scale * ((1 - self.rcs.weight) * mixed + self.rcs.weight * cross)

    def settings(self) -> dict:
        parts = {'rcs': self.rcs, 'sfr': self.sfr}
        # Tuples become lists, as in JSON.
        return {
            name: part and {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(part).items()}
            for name, part in parts.items()
        }


def cross_correlation(earlier: Sequence[tuple[Tensor, Tensor]], values: Tensor) -> Tensor:
    """Mixes values by A_c, the mean attention of earlier blocks, without computing A_c itself.

    Args:
        earlier: (B, heads, T, d) queries and keys of each of them.
        values: (B, heads, T, d) values of the last block.
    """
    return sum(attend(q, k, values) for q, k in earlier) / len(earlier)


def _options(kind: type, name: str, given: dict | bool) -> CrossCorrelation | Feedback:
    """Reads the options of a config; True for all defaults."""
    given = {} if given is True else given
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    return options_of(kind, given, f'ResCLIP.{name}')
