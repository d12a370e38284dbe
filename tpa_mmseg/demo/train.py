"""Trains a small segmentor on painted scenes, in seconds on a CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from safetensors.torch import save
from tqdm import tqdm

from ..utils import atomic_write
from .scenes import paint_scene


def train_host(segmentor: dict, path: Path, steps: int = 500, batch: int = 8, seed: int = 0) -> None:
    """Trains a segmentor of MMSegmentation on scenes by day and saves its weights as safetensors.

    Args:
        segmentor: Its config.
        path: Where the weights go.
        steps: Number of batches.
        batch: Scenes per batch.
        seed: Of the weights and the scenes; scenes from 1,000,000 on are for training only.
    """
    torch.manual_seed(seed)
    model = MODELS.build(segmentor).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 5e-3, total_steps=steps)
    for step in tqdm(range(steps), desc='Training the demo host', unit='step'):
        scenes = [paint_scene(1_000_000 + seed * 100_000 + step * batch + i, (64, 64)) for i in range(batch)]
        data = {
            'inputs': [
                torch.from_numpy(np.ascontiguousarray(image[..., ::-1].transpose(2, 0, 1))) for image, _ in scenes
            ],
            'data_samples': [_sample(labels) for _, labels in scenes],
        }
        data = model.data_preprocessor(data, True)
        losses = model(**data, mode='loss')
        loss = sum(value for name, value in losses.items() if 'loss' in name)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    with atomic_write(path) as file:
        file.write(save({name: value.contiguous() for name, value in model.state_dict().items()}))


def _sample(labels: np.ndarray) -> SegDataSample:
    sample = SegDataSample()
    sample.gt_sem_seg = PixelData(data=torch.from_numpy(labels.astype(np.int64))[None])
    return sample
