"""TPASegmentor: host + encoder + prototype bank + fusion."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import torch
from mmengine.structures import PixelData
from mmseg.models.segmentors.base import BaseSegmentor
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from ..core import AnchorRule, FusedScores, Fusion, Lookup, PrototypeBank, Prototypes, ScoreMap
from ..core.bank_file import check_fingerprint
from ..encoders import Encoder, PixelNormalization
from ..errors import TPAError
from ..hosts import Host, SegmentorHost
from ..hosts.base import build_preprocessor
from ..hosts.batch import image_name, split_batch, unpad
from ..hosts.class_meta import ClassMetaMixin
from ..options import options_of
from .feature_cache import FeatureCache


@MODELS.register_module()
class TPASegmentor(ClassMetaMixin, BaseSegmentor):
    """Adds a cosine lookup against a bank of prototypes to any host's log-probabilities. Updates no weight.

    Data samples leave it with ``pred_sem_seg`` (TPA) and ``host_sem_seg`` (the host alone). Without a bank, or with
    an empty one, both are the host's labels.

    Args:
        host: Config of a host, or of any registered segmentor.
        encoder: Config of the frozen dense encoder.
        bank: File of a saved bank. By default PrototypeBankHook builds one before the test.
        bank_scope: ``'pool'``, or ``'image'`` for the ablation in which each test image is its own pool.
        anchors: Options of :class:`AnchorRule`.
        fusion: Options of :class:`Fusion`.
        feature_cache: Bytes of pool features to keep on the CPU in half precision; 0 keeps none.
        return_scores: Also return TPA's full-size probabilities as ``seg_logits`` (C x H x W floats per image).
        data_preprocessor: By default the host's.
        init_cfg, pretrained, train_cfg, test_cfg: Accepted because MMSegmentation passes them; not used.
    """

    def __init__(
        self,
        host: dict | Host,
        encoder: dict | Encoder,
        bank: str | None = None,
        bank_scope: str = 'pool',
        anchors: dict | None = None,
        fusion: dict | None = None,
        feature_cache: int = 0,
        return_scores: bool = False,
        data_preprocessor: dict | None = None,
        init_cfg: dict | None = None,
        pretrained: None = None,
        train_cfg: dict | None = None,
        test_cfg: dict | None = None,
    ) -> None:
        host = _build(host, 'host')
        encoder = _build(encoder, 'encoder')
        preprocessor = build_preprocessor(data_preprocessor) or host.data_preprocessor
        super().__init__(data_preprocessor=preprocessor, init_cfg=init_cfg)
        self.host = host if isinstance(host, Host) else SegmentorHost(host)
        self.encoder = encoder
        if bank_scope not in ('pool', 'image'):
            raise TPAError(f"model.bank_scope must be 'pool' or 'image', not {bank_scope!r}.")
        self.bank_scope = bank_scope
        self.rule = options_of(AnchorRule, anchors, 'model.anchors')
        self.fusion = options_of(Fusion, fusion, 'model.fusion')
        self.return_scores = return_scores
        self.bank: PrototypeBank | None = None
        self.bank_file = None if bank is None else Path(bank)
        self._prototypes: Prototypes | None = None
        self._cache = FeatureCache(feature_cache) if feature_cache else None
        self.requires_grad_(False)
        self.eval()

    @property
    def num_classes(self) -> int:
        return self.host.num_classes

    @torch.no_grad()
    def predict(
        self, inputs: Tensor | Sequence[Tensor], data_samples: Sequence[SegDataSample] | None = None
    ) -> list[SegDataSample]:
        """Adds ``pred_sem_seg`` and ``host_sem_seg`` to every sample. Args: as for :meth:`Host.score_maps`."""
        if self.bank is None and self.bank_file is not None:
            self.load_bank()
        maps = self.host.score_maps(inputs, data_samples)
        results = []
        for (image, sample), scores in zip(split_batch(inputs, data_samples), maps, strict=True):
            fused = self.fuse(scores, self.encode(image, sample), sample) if self.adapted else None
            host, labels = (scores.labels(),) * 2 if fused is None else fused.both_labels()
            result = SegDataSample() if sample is None else sample
            result.host_sem_seg = PixelData(data=host[None])
            result.pred_sem_seg = PixelData(data=labels[None])
            if self.return_scores:
                result.seg_logits = PixelData(data=(fused or scores).probabilities())
            results.append(result)
        return results

    @property
    def adapted(self) -> bool:
        """Whether there is anything to look up in: a bank, or the test image itself."""
        return self.bank_scope == 'image' or self._prototypes is not None

    def fuse(self, scores: ScoreMap, phi: Tensor, sample: SegDataSample | None) -> FusedScores:
        """The host's scores of an image with the lookup added.

        Args:
            scores: The host's probabilities.
            phi: (D, h, w) features of the image, from :meth:`encode`.
            sample: Its sample.
        """
        prototypes = self._prototypes
        if self.bank_scope == 'image':
            bank = self.new_bank()
            bank.update(scores, phi, image_seed(sample))
            prototypes = bank.prototypes()
        return FusedScores(scores, Lookup(prototypes, phi, scores.size, self.fusion.center), self.fusion)

    @torch.no_grad()
    def adapt(self, data: dict, bank: PrototypeBank) -> None:
        """Folds a batch of pool images into a bank. Args: data: as it comes from a data loader, without labels."""
        data = self.data_preprocessor(data, False)
        inputs, samples = data['inputs'], data['data_samples']
        maps = self.host.score_maps(inputs, samples)
        for (image, sample), scores in zip(split_batch(inputs, samples), maps, strict=True):
            bank.update(scores, self.encode(image, sample, keep=True), image_seed(sample))

    def encode(self, image: Tensor, sample: SegDataSample | None, keep: bool = False) -> Tensor:
        """(D, h, w) features of one pre-processed image; ``keep`` puts them into the feature cache, if there is one."""
        key = None if sample is None else (sample.metainfo.get('img_path'), tuple(image.shape))
        if self._cache is not None and key is not None:
            kept = self._cache.get(key, image.device)
            if kept is not None:
                return kept
        phi = self.encoder(unpad(image, {} if sample is None else sample.metainfo), self._normalization)
        if torch.isnan(phi).any():
            raise TPAError(
                f'The encoder {type(self.encoder).__name__} returned NaN for {image_name(sample)}: '
                'check its weights and precision.'
            )
        if self._cache is not None:
            phi = self._cache.round(phi)
            if keep and key is not None and key[0] is not None:
                self._cache.put(key, phi)
        return phi

    @property
    def _normalization(self) -> PixelNormalization:
        return PixelNormalization.of(self.data_preprocessor)

    def new_bank(self) -> PrototypeBank:
        """An empty bank for this host and encoder."""
        device = next(self.parameters()).device
        return PrototypeBank(self.num_classes, self.encoder.dim, self.rule, device)

    def set_bank(self, bank: PrototypeBank | None, file: str | Path | None = None) -> None:
        """Uses a bank from now on (None: the host alone). ``file`` says where it lies, for the summary."""
        if bank is not None and (bank.num_classes, bank.dim) != (self.num_classes, self.encoder.dim):
            raise TPAError(
                f'A bank of {bank.num_classes} classes x {bank.dim} features does not fit a host of '
                f'{self.num_classes} classes with an encoder of {self.encoder.dim} features: build one for this config.'
            )
        self.bank = bank
        self.bank_file = None if file is None else Path(file)
        self._prototypes = None if bank is None else bank.prototypes().to(next(self.parameters()).device)

    def load_bank(self) -> None:
        """Loads the bank file of the config and checks that it was made for this host, encoder and classes."""
        bank = PrototypeBank.load(self.bank_file)
        check_fingerprint(bank.fingerprint, self.fingerprint(), self.bank_file)
        self.set_bank(bank, self.bank_file)

    def set_classes(self, dataset_meta: dict) -> None:
        """Takes the dataset's classes. Raises TPAError when the host has another number of them."""
        self.host.check_classes(dataset_meta)
        self.keep_meta(dataset_meta)

    def fingerprint(self) -> dict:
        """What a bank for this model is made with; classes only once they are known."""
        print_ = {'host': self.host.fingerprint(), 'encoder': self.encoder.fingerprint()}
        # Not the names that the model may have found in its config: those need not be the dataset's.
        classes = (self._meta or {}).get('classes')
        return print_ if classes is None else {**print_, 'classes': list(classes)}

    def bank_summary(self) -> dict | None:
        """What the report says about the bank in use."""
        if self.bank is None:
            return None
        counts = self.bank.counts.tolist()
        return {
            'path': None if self.bank_file is None else str(self.bank_file),
            'images': self.bank.images,
            'classes_covered': int(self.bank.covered.sum()),
            'num_classes': self.bank.num_classes,
            'anchors': sum(counts),
            'anchors_per_class': counts,
        }

    def train(self, mode: bool = True) -> TPASegmentor:
        """TPA is training-free: everything stays in evaluation mode."""
        return super().train(False)

    def loss(self, inputs: Tensor, data_samples: Sequence[SegDataSample]) -> dict:
        raise TPAError('TPASegmentor is training-free: run it with tools/test.py.')

    def _forward(self, inputs: Tensor, data_samples: Sequence[SegDataSample] | None = None) -> list[Tensor]:
        return self.host._forward(inputs, data_samples)

    def extract_feat(self, inputs: Tensor) -> list[Tensor]:
        return [self.encode(image, None) for image in inputs]

    def encode_decode(self, inputs: Tensor, batch_data_samples: Sequence[SegDataSample]) -> Tensor:
        raise TPAError('TPASegmentor has no encode_decode: call predict.')


def _build(part: dict | torch.nn.Module, name: str) -> torch.nn.Module:
    """Builds the host or encoder; an unknown type is answered with the types there are."""
    if isinstance(part, torch.nn.Module):
        return part
    kind = part.get('type')
    if isinstance(kind, str) and MODELS.get(kind) is None:
        base = Host if name == 'host' else Encoder
        known = sorted(
            key for key, cls in MODELS.module_dict.items() if isinstance(cls, type) and issubclass(cls, base)
        )
        raise TPAError(f'Unknown {name} {kind!r} in the config: known are {", ".join(known)}, or any registered model.')
    return MODELS.build(part)


def image_seed(sample: SegDataSample | None) -> int:
    """A seed per image that does not depend on the order of images or on the rank."""
    return zlib.crc32(Path(image_name(sample)).name.encode())
