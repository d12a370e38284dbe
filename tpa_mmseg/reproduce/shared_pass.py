"""One host pass, many variants: TPA needs only the host's output, so every setting of it can be scored at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from mmengine.config import ConfigDict
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor
from torch.nn import Module

from ..core import PrototypeBank, ScoreMap, sweep_labels
from ..errors import TPAError
from ..hosts.batch import image_name, split_batch
from ..segmentors import TPASegmentor
from ..segmentors.tpa_segmentor import image_seed
from .runs import Setting


class Prediction(NamedTuple):
    """What is known about an image after the pass."""

    sample: SegDataSample
    scores: ScoreMap  #: the host's
    host: Tensor  #: (H, W) its labels
    labels: dict[str, Tensor]  #: key of each variant -> (H, W) labels

    @property
    def truth(self) -> Tensor:
        """(H, W) true labels. Raises TPAError where the dataset has none."""
        if 'gt_sem_seg' not in self.sample:
            raise TPAError(f'{image_name(self.sample)} has no ground truth: add LoadAnnotations to the test pipeline.')
        return self.sample.gt_sem_seg.data.squeeze(0)


class SharedPass:
    """Variants of TPA around one host. Each is a TPASegmentor of its own, so its numbers are those of a run alone.

    Args:
        config: ``model`` of the config: a TPASegmentor.
        variants: The settings.
        encoders: Encoders that variants may name -> config.
        device: Where everything lives.
    """

    def __init__(
        self, config: ConfigDict, variants: Sequence[Setting], encoders: Mapping[str, dict], device: str
    ) -> None:
        self.base: TPASegmentor = _build({**config, 'encoder': _build(config.encoder)})
        self.variants = tuple(variants)
        built = {None: self.base.encoder}
        self.models: dict[str, TPASegmentor] = {}
        for variant in self.variants:
            name = None if _encoder(variant, config, encoders) == config.encoder else variant.encoder
            if name not in built:
                built[name] = _build(_encoder(variant, config, encoders))
            self.models[variant.key] = TPASegmentor(
                host=self.base.host,
                encoder=built[name],
                bank_scope=variant.bank_scope,
                anchors={**config.get('anchors', {}), **variant.anchors},
                fusion={**config.get('fusion', {}), **variant.fusion},
                data_preprocessor=self.base.data_preprocessor,
            ).to(device)
        self.base.to(device)

    def set_classes(self, metainfo: dict) -> None:
        """Takes the dataset's classes. Raises TPAError where the host has another number of them."""
        for model in (self.base, *self.models.values()):
            model.set_classes(metainfo)

    def build_banks(self, pool: Iterable[tuple[str, dict]], members: Mapping[str, set[str]]) -> None:
        """Gives every variant its bank; the host and each encoder see every image of the pool once.

        Args:
            pool: Name and data (as from a data loader, without labels) of every image that any bank wants.
            members: Key of each variant -> names of the images of its pool.
        """
        banks: dict[tuple, PrototypeBank] = {}
        owners = {key: (model.encoder, model.rule, frozenset(members[key])) for key, model in self._with_pool()}
        for key, model in self._with_pool():
            banks.setdefault(owners[key], model.new_bank())
        self.base.host.reset()
        for name, data in pool:
            for image, sample, scores in self.score_maps(data):
                features: dict = {}
                for (encoder, _, names), bank in banks.items():
                    if name in names:
                        phi = self._features(features, encoder, image, sample)
                        bank.update(scores, phi, image_seed(sample))
        for key, model in self._with_pool():
            banks[owners[key]].pool = sorted(members[key])
            model.set_bank(banks[owners[key]])
        self.base.host.reset()

    def predict(self, data: dict) -> Iterator[Prediction]:
        """Labels of the host and of every variant for each image of a batch, as it comes from a data loader."""
        for image, sample, scores in self.score_maps(data):
            features: dict = {}
            fused = [
                model.fuse(scores, self._features(features, model.encoder, image, sample), sample)
                for model in self.models.values()
            ]
            host, labels = sweep_labels(scores, fused)
            yield Prediction(sample, scores, host, dict(zip(self.models, labels, strict=True)))

    def _with_pool(self) -> list[tuple[str, TPASegmentor]]:
        return [(key, model) for key, model in self.models.items() if model.bank_scope == 'pool']

    @torch.no_grad()
    def score_maps(self, data: dict) -> list[tuple[Tensor, SegDataSample, ScoreMap]]:
        """Pre-processed (3, H, W) image, sample and host's scores for each image of a batch."""
        data = self.base.data_preprocessor(data, False)
        inputs, samples = data['inputs'], data['data_samples']
        maps = self.base.host.score_maps(inputs, samples)
        return [(*pair, scores) for pair, scores in zip(split_batch(inputs, samples), maps, strict=True)]

    def _features(self, known: dict, encoder, image: Tensor, sample: SegDataSample) -> Tensor:
        """(D, h, w) features of an image, computed once for all variants with this encoder."""
        if encoder not in known:
            owner = next(model for model in self.models.values() if model.encoder is encoder)
            known[encoder] = owner.encode(image, sample)
        return known[encoder]


def _build(config: dict) -> Module:
    """A model or an encoder. One without weights draws the same ones whatever was built before it."""
    torch.manual_seed(0)
    return MODELS.build(config)


def _encoder(variant: Setting, config: ConfigDict, encoders: Mapping[str, dict]) -> dict:
    """Config of the encoder that a variant asks for."""
    if variant.encoder is None:
        return config.encoder
    if variant.encoder == 'clip':
        return ConfigDict(type='CLIPEncoder', clip=config.host.clip)
    if variant.encoder not in encoders:
        raise TPAError(f'There is no encoder {variant.encoder!r}: known are clip, {", ".join(encoders)}.')
    return ConfigDict(encoders[variant.encoder])
