"""SegmentorHost: any MMSegmentation segmentor as a host."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from mmengine.config import ConfigDict
from mmseg.models.decode_heads.decode_head import BaseDecodeHead
from mmseg.models.segmentors import EncoderDecoder
from mmseg.models.segmentors.base import BaseSegmentor
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from ..core import ClassProbabilities, DecisionRule, QueryScores, Resized, RowSource, ScoreMap
from ..errors import TPAError
from ..weights.files import load_into, load_state_dict
from .base import Host
from .batch import original_size, padding, split_batch, unpad

# Heads that classify masks: their class scores are sums of mask probabilities, not logits.
_MASK_CLASSIFIERS = ('MaskFormerHead', 'Mask2FormerHead', 'SideAdapterCLIPHead')


@MODELS.register_module()
class SegmentorHost(Host):
    """Wraps a registered segmentor (EncoderDecoder, cascades, mask classifiers) without changing it.

    Its own ``inference`` (whole or slide) returns scores at the size of the network's input or lower; they are resized
    and decided band by band by the segmentor's own rule, so that the labels are those of its ``predict``.

    Args:
        segmentor: Config of the segmentor, or the segmentor.
        checkpoint: Weights file for it (MMSegmentation's own or safetensors).
        output: ``'logits'``, ``'probabilities'`` (non-negative, need not sum to one), or ``'auto'``: by the head.
        **kwargs: As for :class:`Host`.
    """

    def __init__(
        self,
        segmentor: dict | BaseSegmentor,
        checkpoint: str | None = None,
        output: Literal['auto', 'logits', 'probabilities'] = 'auto',
        data_preprocessor: dict | nn.Module | None = None,
        **kwargs,
    ) -> None:
        # A segmentor that was built by the caller may have its weights already.
        untrained = checkpoint is None and not isinstance(segmentor, BaseSegmentor)
        if not isinstance(segmentor, BaseSegmentor):
            segmentor = MODELS.build(ConfigDict(segmentor))  # mmseg reads its configs by attribute
        super().__init__(data_preprocessor=data_preprocessor or segmentor.data_preprocessor, **kwargs)
        if not hasattr(segmentor, 'inference'):
            raise TPAError(f'{type(segmentor).__name__} has no inference(): SegmentorHost cannot wrap it.')
        if checkpoint is not None:
            load_into(
                segmentor, load_state_dict(checkpoint), checkpoint, unused=('auxiliary_head.', 'data_preprocessor.')
            )
        self.untrained = untrained
        self.segmentor = segmentor.requires_grad_(False).eval()
        self.head = _last_head(segmentor)
        # One output channel means two classes, the second for pixels that exceed the head's threshold.
        self.binary = getattr(segmentor, 'out_channels', None) == 1
        self.num_classes = 2 if self.binary else getattr(segmentor, 'num_classes', None) or self.head.num_classes
        if output not in ('auto', 'logits', 'probabilities'):
            raise TPAError(f"SegmentorHost.output must be 'auto', 'logits' or 'probabilities', not {output!r}.")
        if output == 'auto':
            output = 'probabilities' if type(self.head).__name__ in _MASK_CLASSIFIERS else 'logits'
        self.output = output

    def score_maps(
        self, inputs: Tensor | Sequence[Tensor], data_samples: Sequence[SegDataSample] | None = None
    ) -> list[ScoreMap]:
        if isinstance(inputs, Tensor):
            return self._batch_maps(inputs, data_samples)
        # On a GPU images of one size go through the network together; a CPU gains nothing from it.
        groups: dict[tuple, list[int]] = {}
        for index, image in enumerate(inputs):
            alone = index if image.device.type == 'cpu' else None
            groups.setdefault((tuple(image.shape), alone), []).append(index)
        maps: list[ScoreMap] = [None] * len(inputs)
        for members in groups.values():
            samples = None if data_samples is None else [data_samples[index] for index in members]
            batch = self._batch_maps(torch.stack([inputs[index] for index in members]), samples)
            for index, scores in zip(members, batch, strict=True):
                maps[index] = scores
        return maps

    def caveats(self) -> list[str]:
        if not self.untrained:
            return []
        return [
            f'The weights of {type(self.segmentor).__name__} are random: set model.host.checkpoint to its weights file.'
        ]

    def fingerprint(self) -> dict:
        settings = {'output': self.output, **(self.segmentor.test_cfg or {})}
        return {**super().fingerprint(), 'type': type(self.segmentor).__name__, 'settings': settings}

    def _batch_maps(self, inputs: Tensor, data_samples: Sequence[SegDataSample] | None) -> list[ScoreMap]:
        size = tuple(inputs.shape[-2:])
        if data_samples is None:
            plain = {'ori_shape': size, 'img_shape': size, 'pad_shape': size, 'padding_size': [0] * 4}
            metas = [dict(plain) for _ in inputs]
        else:
            metas = [sample.metainfo for sample in data_samples]
        segmentor = _without_last_resize(self.segmentor) if self._can_skip_resize(metas) else self.segmentor
        batch = segmentor.inference(inputs, metas)
        maps = []
        for image, scores, (_, sample) in zip(inputs, batch, split_batch(inputs, data_samples), strict=True):
            alarms = self.check_scores([scores], sample)
            maps.append(self._score_map(scores, size, original_size(image, sample), sample))
            maps[-1].alarms.extend(alarms)
        return maps

    def _can_skip_resize(self, metas: list[dict]) -> bool:
        """Returns True if the head's last resize is the usual one, which bands of rows can do later."""
        return (
            isinstance(self.segmentor, EncoderDecoder)
            and type(self.head).predict_by_feat is BaseDecodeHead.predict_by_feat
            and self.segmentor.test_cfg.get('mode', 'whole') == 'whole'
            and not any(meta.get('flip') or any(padding(meta)) for meta in metas)
        )

    def _score_map(
        self, scores: Tensor, network: tuple[int, int], size: tuple[int, int], sample: SegDataSample | None
    ) -> ScoreMap:
        """Args: scores: (C, h, w) output of the segmentor; network: size of its input; size: of the labels."""
        align_corners = self.segmentor.align_corners
        source: Tensor | RowSource = scores
        if tuple(scores.shape[-2:]) == network:
            source = _remove_padding_and_flip(scores, {} if sample is None else sample.metainfo)
        elif size != network:
            source = Resized(scores, network, align_corners)
        if self.binary:
            if isinstance(source, Resized):
                source = Resized(_against_zero(scores), network, align_corners)
            else:
                source = _against_zero(source)
            rule = DecisionRule(threshold=self.head.threshold)
            return QueryScores(source, size, rule=rule, align_corners=align_corners)
        kind = QueryScores if self.output == 'logits' else ClassProbabilities
        return kind(source, size, align_corners=align_corners)


def _against_zero(logit: Tensor) -> Tensor:
    """(1, h, w) logit -> (2, h, w) whose softmax is (1 - sigmoid, sigmoid)."""
    return F.pad(logit, (0, 0, 0, 0, 1, 0))


def _last_head(segmentor: BaseSegmentor) -> nn.Module:
    """Returns the head whose output counts: cascades have several."""
    head = getattr(segmentor, 'decode_head', None)
    if head is None:
        raise TPAError(f'{type(segmentor).__name__} has no decode_head: SegmentorHost cannot wrap it.')
    return head[-1] if isinstance(head, nn.ModuleList) else head


def _without_last_resize(segmentor: EncoderDecoder) -> EncoderDecoder:
    """A copy of a segmentor, with the same layers and weights, whose head returns its scores at their own size."""
    head = copy.copy(_last_head(segmentor))
    head.predict_by_feat = lambda scores, metas: scores
    if isinstance(segmentor.decode_head, nn.ModuleList):
        head = _with_module(segmentor.decode_head, str(len(segmentor.decode_head) - 1), head)
    return _with_module(segmentor, 'decode_head', head)


def _with_module(module: nn.Module, name: str, part: nn.Module) -> nn.Module:
    """A copy of a module that shares everything with it but one part."""
    other = copy.copy(module)
    other._modules = {**module._modules, name: part}
    return other


def _remove_padding_and_flip(scores: Tensor, meta: dict) -> Tensor:
    scores = unpad(scores, meta)
    if meta.get('flip'):
        scores = torch.flip(scores, (-1 if meta.get('flip_direction') == 'horizontal' else -2,))
    return scores
