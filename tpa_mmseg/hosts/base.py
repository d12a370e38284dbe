"""Base class of all hosts: the class probabilities of each image, as a ScoreMap."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import torch
from mmengine.structures import PixelData
from mmseg.models.segmentors.base import BaseSegmentor
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from ..core import Alarms, ScoreMap, label_type
from ..errors import TPAError
from ..options import AtLeastOne
from ..weights.files import digest
from .batch import image_name
from .class_meta import ClassMetaMixin


class Host(ClassMetaMixin, BaseSegmentor):
    """A frozen segmentor that predicts class probabilities. It runs alone, or inside a TPASegmentor.

    Args:
        num_classes: Number of classes, or None if it follows from the class names.
        data_preprocessor: As in MMSegmentation.
        return_scores: Also return full-size probabilities as ``seg_logits``. They take C x H x W floats per image.
        nonfinite: If the network returns NaN, ``'raise'`` an error, or ``'keep'`` the host's label for such pixels,
            which are then never used as anchors.
        init_cfg, pretrained, train_cfg, test_cfg: Accepted because MMSegmentation passes them; not used.

    Attributes:
        images_are_independent: Whether the scores of an image do not depend on other images.
    """

    images_are_independent: bool = True

    def __init__(
        self,
        num_classes: AtLeastOne | None = None,
        data_preprocessor: dict | nn.Module | None = None,
        return_scores: bool = False,
        nonfinite: Literal['raise', 'keep'] = 'raise',
        init_cfg: dict | None = None,
        pretrained: None = None,
        train_cfg: dict | None = None,
        test_cfg: dict | None = None,
    ) -> None:
        super().__init__(data_preprocessor=build_preprocessor(data_preprocessor), init_cfg=init_cfg)
        if nonfinite not in ('raise', 'keep'):
            raise TPAError(f"nonfinite must be 'raise' or 'keep', not {nonfinite!r}.")
        self.num_classes = num_classes
        self.return_scores = return_scores
        self.nonfinite = nonfinite

    def __repr__(self) -> str:
        size = sum(parameter.numel() for parameter in self.parameters()) / 1e6
        return f'{type(self).__name__}({self.num_classes} classes, {size:.1f} M parameters)'

    @abstractmethod
    def score_maps(
        self, inputs: Tensor | Sequence[Tensor], data_samples: Sequence[SegDataSample] | None = None
    ) -> list[ScoreMap]:
        """Computes the class probabilities of every image.

        Args:
            inputs: (N, 3, H, W) pre-processed images, or a list of (3, H, W) images of different sizes.
            data_samples: Their samples; ``ori_shape`` is the size of the scores. Default: the size of the input.
        """

    @torch.no_grad()
    def predict(
        self, inputs: Tensor | Sequence[Tensor], data_samples: Sequence[SegDataSample] | None = None
    ) -> list[SegDataSample]:
        """Adds ``pred_sem_seg`` by the host's decision rule (and ``seg_logits`` on request) to every sample."""
        maps = self.score_maps(inputs, data_samples)
        samples = list(data_samples) if data_samples is not None else [SegDataSample() for _ in maps]
        for scores, sample in zip(maps, samples, strict=True):
            sample.pred_sem_seg = PixelData(data=scores.labels(label_type(scores.num_classes))[None])
            if self.return_scores:
                sample.seg_logits = PixelData(data=scores.probabilities())
        for scores in maps:
            scores.alarms.check()
        return samples

    def check_classes(self, dataset_meta: dict) -> None:
        """Raises TPAError if a dataset has another number of classes."""
        classes = dataset_meta.get('classes') or ()
        if len(classes) != self.num_classes:
            raise TPAError(
                f'The host {type(self).__name__} has {self.num_classes} classes, but the dataset has {len(classes)}: '
                'set class_names of the host to the classes of this dataset, or test on another dataset.'
            )

    def caveats(self) -> list[str]:
        """Returns what makes this host's labels worthless, e.g. that its weights are random."""
        return []

    def reset(self) -> None:
        """Forgets what was learned from earlier images. Most hosts learn nothing."""

    def fingerprint(self) -> dict:
        """Identifies the host: a bank built with another one is refused."""
        return {'type': type(self).__name__, 'num_classes': self.num_classes, 'weights': digest(self)}

    def check_scores(self, scores: Sequence[Tensor], sample: SegDataSample | None) -> Alarms:
        """The alarm of an image whose scores are NaN somewhere. Args: scores: float tensors of any shape."""
        alarms = Alarms()
        if self.nonfinite == 'raise':
            flags = [torch.isnan(part).any() for part in scores]
            alarms.add(
                flags[0] if len(flags) == 1 else torch.stack(flags).any(),
                f'The host {type(self).__name__} returned NaN for {image_name(sample)}: check its weights and '
                "precision, or set nonfinite='keep' in its config to keep its labels for such pixels.",
            )
        return alarms

    def train(self, mode: bool = True) -> Host:
        """Hosts are frozen: they stay in evaluation mode."""
        return super().train(False)

    def loss(self, inputs: Tensor, data_samples: Sequence[SegDataSample]) -> dict:
        raise TPAError(f'{type(self).__name__} is training-free: run it with tools/test.py.')

    def _forward(self, inputs: Tensor, data_samples: Sequence[SegDataSample] | None = None) -> list[Tensor]:
        return [scores.log_band(0, scores.size[0]) for scores in self.score_maps(inputs, data_samples)]

    def extract_feat(self, inputs: Tensor) -> Tensor:
        raise TPAError(f'{type(self).__name__} has no extract_feat: call score_maps.')

    def encode_decode(self, inputs: Tensor, batch_data_samples: Sequence[SegDataSample]) -> Tensor:
        raise TPAError(f'{type(self).__name__} has no encode_decode: call score_maps.')


def build_preprocessor(data_preprocessor: dict | nn.Module | None) -> nn.Module | None:
    """Builds it from mmseg's registry; without a default scope mmengine would use its own."""
    return MODELS.build(data_preprocessor) if isinstance(data_preprocessor, dict) else data_preprocessor
