"""TPASegmentor: host + encoder + prototype bank + fusion."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Literal, cast

import torch
from mmengine.structures import PixelData
from mmseg.models.segmentors.base import BaseSegmentor
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from ..core import (
    ENCODER,
    Adapter,
    AnchorRule,
    Evidence,
    EvidenceCache,
    Fusion,
    PrototypeBank,
    Prototypes,
    decide,
    label_type,
)
from ..core.bank_file import check_fingerprint
from ..core.centered import SecondTerm
from ..core.given import given
from ..encoders import Encoder, PixelNormalization
from ..errors import TPAError
from ..hosts import Host, HostFeatures, SegmentorHost
from ..hosts.base import build_preprocessor
from ..hosts.batch import split_batch
from ..hosts.class_meta import ClassMetaMixin
from ..options import Range, one_of, options_of
from .gather import gather_evidence


@MODELS.register_module()
class TPASegmentor(ClassMetaMixin, BaseSegmentor):
    """Adds a cosine lookup against a bank of prototypes to any host's log-probabilities. Updates no weight.

    Data samples leave it with ``pred_sem_seg`` (TPA) and ``host_sem_seg`` (the host alone). Without a bank, or with
    an empty one, both are the host's labels.

    Args:
        host: Config of a host, or of any registered segmentor.
        encoder: Config of the frozen dense encoder; ``dict(type='HostFeatures')`` for the one inside ProxyCLIP or
            Trident.
        bank: File of a saved bank. Default: PrototypeBankHook builds one before the test.
        bank_scope: ``'pool'``, or ``'image'`` for the ablation in which each test image is its own pool.
        anchors: Options of :class:`AnchorRule`.
        fusion: Options of :class:`Fusion`.
        evidence_cache: Bytes of evidence of pool images to keep, so that a test image that is also in the pool goes
            through the networks once; 0 keeps none. It is ignored for hosts whose scores depend on other images.
        return_scores: Also return TPA's full-size probabilities as ``seg_logits`` (C x H x W floats per image).
        data_preprocessor: Default: the host's.
        init_cfg, pretrained, train_cfg, test_cfg: Accepted because MMSegmentation passes them; not used.

    Attributes:
        encoders: Name -> encoder. The one of the config is called ``'encoder'``; experiments add others.
    """

    def __init__(
        self,
        host: dict | BaseSegmentor,
        encoder: dict | Encoder,
        bank: str | os.PathLike | None = None,
        bank_scope: Literal['pool', 'image'] = 'pool',
        anchors: Annotated[dict, AnchorRule] | None = None,
        fusion: Annotated[dict, Fusion] | None = None,
        evidence_cache: Annotated[int, Range(0)] = 1 << 29,
        return_scores: bool = False,
        data_preprocessor: dict | nn.Module | None = None,
        init_cfg: dict | None = None,
        pretrained: None = None,
        train_cfg: dict | None = None,
        test_cfg: dict | None = None,
    ) -> None:
        host = _as_host(host)
        features = _build(encoder, 'encoder')
        preprocessor = build_preprocessor(data_preprocessor) or host.data_preprocessor
        super().__init__(data_preprocessor=preprocessor, init_cfg=init_cfg)
        self.host = host
        if isinstance(features, HostFeatures):
            features.attach(host)
        self.encoders = nn.ModuleDict({ENCODER: features})
        self.bank_scope = one_of('model.bank_scope', bank_scope, ('pool', 'image'))
        self.anchor_rule = options_of(AnchorRule, anchors, 'model.anchors')
        self.fusion = options_of(Fusion, fusion, 'model.fusion')
        if self.fusion.consistent and bank_scope == 'image':
            raise TPAError("model.fusion.consistent needs a pool: set model.bank_scope to 'pool', or leave it out.")
        self.return_scores = return_scores
        self.bank: PrototypeBank | None = None
        self.bank_file = None if bank is None else Path(bank)
        self._prototypes: Prototypes | None = None
        self._normalized: tuple[nn.Module, PixelNormalization] | None = None
        self._second: SecondTerm | None = None
        self._cache: EvidenceCache[Evidence] = EvidenceCache(evidence_cache if self.host.images_are_independent else 0)
        self.requires_grad_(False)
        self.eval()

    def __repr__(self) -> str:
        return f'TPASegmentor({self.host!r}, {self.encoder!r}, {"no bank" if self.bank is None else repr(self.bank)})'

    @property
    def num_classes(self) -> int:
        return given(self.host.num_classes)

    @property
    def encoder(self) -> Encoder:
        """The encoder of the config."""
        return self._encoder(ENCODER)

    def _encoder(self, name: str) -> Encoder:
        return cast(Encoder, self.encoders[name])

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    # Images in, evidence and labels out

    @torch.no_grad()
    def evidence(
        self,
        inputs: Tensor | Sequence[Tensor],
        data_samples: Sequence[SegDataSample] | None = None,
        encoders: Collection[str] = (ENCODER,),
        keep: bool = False,
    ) -> list[Evidence]:
        """The evidence of a pre-processed batch. Images in the cache do not go through the networks again.

        Args:
            inputs: As for :meth:`Host.score_maps`.
            data_samples: Their samples.
            encoders: Names of the encoders to run; none for the host alone.
            keep: Put the evidence into the cache, as far as there is room.
        """
        keys = [_cache_key(image, sample) for image, sample in split_batch(inputs, data_samples)]
        kept = [evidence for key in keys if (evidence := self._cache.get(key)) is not None]
        if len(kept) == len(keys) and all(evidence.features.keys() >= set(encoders) for evidence in kept):
            return kept
        chosen = {name: self._encoder(name) for name in encoders}
        gathered = gather_evidence(self.host, chosen, self._normalization(), inputs, data_samples)
        for key, evidence in zip(keys, gathered, strict=True):
            if keep and key is not None:
                self._cache.put(key, evidence)
        return gathered

    def _normalization(self) -> PixelNormalization:
        """What the data preprocessor does to pixels; read from its buffers once, because that waits for a GPU."""
        if self._normalized is None or self._normalized[0] is not self.data_preprocessor:
            self._normalized = self.data_preprocessor, PixelNormalization.of(self.data_preprocessor)
        return self._normalized[1]

    def look(
        self, data: dict, encoders: Collection[str] = (ENCODER,), keep: bool = False
    ) -> list[tuple[Evidence, SegDataSample | None]]:
        """The evidence of a batch as a data loader gives it, each image with its sample."""
        data = self.data_preprocessor(data, False)
        inputs, samples = data['inputs'], data['data_samples']
        pairs = zip(self.evidence(inputs, samples, encoders, keep), split_batch(inputs, samples), strict=True)
        return [(evidence, sample) for evidence, (_, sample) in pairs]

    @torch.no_grad()
    def predict(
        self, inputs: Tensor | Sequence[Tensor], data_samples: Sequence[SegDataSample] | None = None
    ) -> list[SegDataSample]:
        """Add ``pred_sem_seg`` and ``host_sem_seg`` to every sample. Args: as for :meth:`Host.score_maps`."""
        if self.bank is None and self.bank_file is not None:
            self.load_bank()
        adapters = self.adapters
        samples = [SegDataSample() for _ in inputs] if data_samples is None else list(data_samples)
        gathered = self.evidence(inputs, data_samples, [adapter.encoder for adapter in adapters])
        for evidence, sample in zip(gathered, samples, strict=True):
            host, adapted = decide(evidence, adapters, label_type(self.num_classes))
            sample.host_sem_seg = PixelData(data=host[None])
            sample.pred_sem_seg = PixelData(data=(adapted[0] if adapted else host)[None])
            if self.return_scores:
                scores = adapters[0].fuse(evidence) if adapters else evidence.scores
                sample.seg_logits = PixelData(data=scores.probabilities())
            evidence.release()
        return samples

    @property
    def adapters(self) -> tuple[Adapter, ...]:
        """The model's own setting of TPA; none without anything to look up in."""
        if self.bank_scope == 'image':
            return (Adapter(None, self.fusion, self.anchor_rule),)
        return () if self._prototypes is None else (Adapter(self._prototypes, self.fusion, second=self._second),)

    # The bank

    def new_bank(self, rule: AnchorRule | None = None, encoder: str = ENCODER) -> PrototypeBank:
        """An empty bank for this host. Args: rule: default, the model's; encoder: whose features it sums."""
        dim = self._encoder(encoder).dim
        return PrototypeBank(self.num_classes, dim, rule or self.anchor_rule, self.device, encoder)

    def set_bank(self, bank: PrototypeBank | None, file: str | Path | None = None) -> None:
        """Use a bank from now on (None: the host alone). ``file`` is its place on disk, for the report."""
        if bank is not None and (bank.num_classes, bank.dim) != (self.num_classes, self.encoder.dim):
            raise TPAError(
                f'A bank of {bank.num_classes} classes x {bank.dim} features does not fit a host of '
                f'{self.num_classes} classes with an encoder of {self.encoder.dim} features: build one for this config.'
            )
        self.bank = bank
        self.bank_file = None if file is None else Path(file)
        self._prototypes = None if bank is None else bank.prototypes().to(self.device)
        self._second = None if bank is None else bank.second_term(self.fusion)

    def load_bank(self) -> None:
        """Load the bank file of the config and check that it was made for this host, encoder and classes."""
        file = given(self.bank_file)
        bank = PrototypeBank.load(file)
        check_fingerprint(bank.fingerprint, self.fingerprint(), file)
        self.set_bank(bank, file)

    def set_classes(self, dataset_meta: dict) -> None:
        """Take the dataset's classes. Raises TPAError when the host has another number of them."""
        self.host.check_classes(dataset_meta)
        self.keep_meta(dataset_meta)

    def fingerprint(self) -> dict:
        """What a bank for this model is made with; classes only once they are known."""
        made_with = {'host': self.host.fingerprint(), 'encoder': self.encoder.fingerprint()}
        # Not the names that the model may have found in its config: those need not be the dataset's.
        classes = (self._meta or {}).get('classes')
        return made_with if classes is None else {**made_with, 'classes': list(classes)}

    # What MMSegmentation expects of a segmentor

    def train(self, mode: bool = True) -> TPASegmentor:
        """TPA is training-free: everything stays in evaluation mode."""
        return super().train(False)

    def loss(self, inputs: Tensor, data_samples: Sequence[SegDataSample]) -> dict:
        raise TPAError('TPASegmentor is training-free: run it with tools/test.py.')

    def _forward(self, inputs: Tensor, data_samples: Sequence[SegDataSample] | None = None) -> list[Tensor]:
        return self.host._forward(inputs, data_samples)

    def extract_feat(self, inputs: Tensor) -> list[Tensor]:
        """(D, h, w) features of the encoder for each image."""
        return [evidence.features[ENCODER] for evidence in self.evidence(inputs)]

    def encode_decode(self, inputs: Tensor, batch_data_samples: Sequence[SegDataSample]) -> Tensor:
        raise TPAError('TPASegmentor has no encode_decode: call predict.')


def _cache_key(image: Tensor, sample: SegDataSample | None) -> tuple | None:
    """Identifies an image at its size; None for an image without a file, which is never cached."""
    path = None if sample is None else sample.metainfo.get('img_path')
    return None if path is None else (path, tuple(image.shape))


def _as_host(host: dict | BaseSegmentor) -> Host:
    """Builds the host, around any other segmentor too."""
    kind = MODELS.get(host['type']) if isinstance(host, dict) and isinstance(host.get('type'), str) else None
    if kind is not None and not issubclass(kind, Host):
        return SegmentorHost(host)
    host = _build(host, 'host')
    return host if isinstance(host, Host) else SegmentorHost(host)


def _build(part: dict | nn.Module, name: str) -> nn.Module:
    """Build the host or encoder; an unknown type is answered with the known ones."""
    if isinstance(part, nn.Module):
        return part
    kind = part.get('type')
    if isinstance(kind, str) and MODELS.get(kind) is None:
        base = Host if name == 'host' else Encoder
        known = sorted(
            key for key, cls in MODELS.module_dict.items() if isinstance(cls, type) and issubclass(cls, base)
        )
        raise TPAError(
            f'Unknown {name} {kind!r} in the config. Choose from: {", ".join(known)}, or any registered model.'
        )
    return MODELS.build(part)
