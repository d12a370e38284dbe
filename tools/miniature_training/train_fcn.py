"""Trains a small segmentor of MMSegmentation with labels, in a few minutes: a host that is no CLIP."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from mmengine.config import ConfigDict
from mmengine.registry import init_default_scope
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from tpa_mmseg.miniature.world import CLASSES, IGNORED

from .cards import write_weights
from .probe import mean_recall
from .training import Training, load_scenes
from .views import Views, turn_hue

#: The segmentor of ``configs/miniature/fcn_mini.py``.
SEGMENTOR = {
    'type': 'EncoderDecoder',
    'data_preprocessor': {
        'type': 'SegDataPreProcessor',
        'mean': [123.675, 116.28, 103.53],
        'std': [58.395, 57.12, 57.375],
        'bgr_to_rgb': True,
        'size': (64, 64),
    },
    'backbone': {
        'type': 'ResNet',
        'depth': 18,
        'base_channels': 16,
        'stem_channels': 16,
        'num_stages': 2,
        'strides': (1, 2),
        'dilations': (1, 1),
        'out_indices': (0, 1),
        'norm_cfg': {'type': 'BN', 'requires_grad': True},
    },
    'decode_head': {
        'type': 'FCNHead',
        'in_channels': 32,
        'in_index': 1,
        'channels': 32,
        'num_convs': 1,
        'concat_input': False,
        'num_classes': len(CLASSES),
        'norm_cfg': {'type': 'BN', 'requires_grad': True},
        'loss_decode': {'type': 'CrossEntropyLoss', 'use_sigmoid': False},
    },
    'test_cfg': {'mode': 'whole'},
}


@dataclass(frozen=True)
class FCNSettings:
    """Everything that decides the weights.

    Attributes:
        steps: Of training.
        batch: Views of a step.
        scenes: How many scenes of the train split are painted.
        side: Of a view in pixels.
        rate: Highest learning rate.
        seed: Of everything random.
    """

    steps: int = 1200
    batch: int = 8
    scenes: int = 1000
    side: int = 64
    rate: float = 4e-3
    seed: int = 0


class FCNTask:
    """The label of every pixel of views of scenes."""

    def __init__(self, settings: FCNSettings, cache: Path) -> None:
        self.settings = settings
        torch.manual_seed(settings.seed)
        self.rng = torch.Generator().manual_seed(settings.seed + 1)
        init_default_scope('mmseg')  # where MMEngine looks for the parts of a segmentor
        self.model = MODELS.build(ConfigDict(SEGMENTOR)).train()
        self._scenes = load_scenes('train', settings.scenes, cache)
        self._validation = load_scenes('val', 40, cache)

    def loss(self) -> tuple[Tensor, dict[str, float]]:
        """The loss of the next batch."""
        index = torch.randint(len(self._scenes['images']), (self.settings.batch,), generator=self.rng).numpy()
        images = torch.from_numpy(self._scenes['images'][index]).permute(0, 3, 1, 2).float()
        labels = torch.from_numpy(self._scenes['labels'][index]).float()[:, None]
        sides = (0.75 * self.settings.side, 1.25 * self.settings.side)
        views = Views.draw(len(index), self.rng, sides, 0.2, images.shape[2:])
        images = turn_hue(views.take(images, self.settings.side), 0.1, self.rng).clamp(0, 255)
        labels = views.take(labels, self.settings.side, 'nearest').long()
        # Segmentors take images as OpenCV reads them, blue first.
        samples = [SegDataSample(gt_sem_seg=PixelData(data=label)) for label in labels]
        data = self.model.data_preprocessor({'inputs': list(images.flip(1)), 'data_samples': samples}, True)
        losses = self.model(**data, mode='loss')
        return losses['decode.loss_ce'], {'accuracy': losses['decode.acc_seg'].item()}

    def probe(self) -> dict[str, float]:
        """Mean recall over the classes of the pixels of val scenes."""
        found = []
        for image in self._validation['images']:
            data = {'inputs': [torch.from_numpy(image).permute(2, 0, 1).flip(0)]}
            found.append(self.model.test_step(data)[0].pred_sem_seg.data[0])
        truth = torch.from_numpy(self._validation['labels']).long()
        found = torch.stack(found).masked_fill(truth == IGNORED, IGNORED)
        return {'recall': mean_recall(found.flatten(), truth.flatten())}


def train(out: Path, work_dir: Path, settings: FCNSettings | None = None, resume: bool = True) -> None:
    """Trains and writes the weights.

    Args:
        out: The safetensors file.
        work_dir: For the checkpoint and the log; the painted scenes are kept beside it.
        settings: What decides the weights.
        resume: Whether to go on from a checkpoint in ``work_dir``.
    """
    settings = settings or FCNSettings()
    task = FCNTask(settings, Path(work_dir).parent)
    training = Training(work_dir, settings.steps, {'segmentor': task.model}, task.rng, settings.rate)
    if resume:
        training.resume()
    training.run(task.loss, task.probe)
    card = training.card('the pictures and labels of the train split', settings)
    write_weights(out, task.model.state_dict(), card)
