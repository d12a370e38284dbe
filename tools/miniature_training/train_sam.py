"""Trains the miniature SAM on the surfaces and things of scenes, without regard to what they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn

from tpa_mmseg.miniature.splits import split_of
from tpa_mmseg.sam.decoder import SAMDecoder
from tpa_mmseg.sam.encoder import SAMEncoder

from .cards import write_weights
from .sam_losses import disagreement, prompt_losses
from .sam_probe import probe
from .sam_prompts import KINDS, Asking, Prompts, ask, patch_owners
from .training import Training, load_scenes
from .views import turn_hue

#: What ``sam=dict(model=...)`` takes. A patch covers 10 pixels of a scene of 160, a pixel of a mask 2.5.
MODEL = {
    'embed_dim': 96,
    'depth': 4,
    'num_heads': 3,
    'global_attn_indexes': (1, 3),
    'window_size': 8,
    'image_size': 256,
    'prompt_dim': 64,
    'decoder_heads': 4,
    'decoder_mlp': 128,
    'iou_hidden': 64,
    'mask_in_chans': 16,
}


@dataclass(frozen=True)
class SAMSettings:
    """Everything that decides the weights.

    Attributes:
        model: Dimensions.
        steps: Of training.
        images: Of a step, each asked in one way.
        kinds: How often each of the kinds of prompts is chosen.
        again: Share of the images without a mask prompt that are asked once more, with their answer as a mask.
        asking: How prompts are drawn.
        contrast: Weight of the contrast between patches beside the losses of masks.
        scenes: How many scenes of the train split are painted.
        zoomed: Share of the images that are cut to a part of a scene, and the smallest share of its sides that is left.
        hue: Share of the images whose hues are turned.
        rate: Highest learning rate.
        seed: Of everything random.
        every: Steps between two probes and checkpoints.
        probes: How many scenes of the val split are probed.
    """

    model: Mapping = field(default_factory=lambda: dict(MODEL))
    steps: int = 2500
    images: int = 4
    kinds: tuple[float, ...] = (0.2, 0.1, 0.2, 0.2, 0.3)
    again: float = 0.1
    asking: Asking = Asking()
    contrast: float = 0.5
    scenes: int = 8000
    zoomed: tuple[float, float] = (0.5, 0.6)
    hue: float = 0.5
    rate: float = 2e-3
    seed: int = 0
    every: int = 100
    probes: int = 25


class SAMTask:
    """Masks for prompts about the regions of scenes."""

    def __init__(self, settings: SAMSettings, cache: Path) -> None:
        self.settings = settings
        torch.manual_seed(settings.seed)
        self.rng = torch.Generator().manual_seed(settings.seed + 1)
        self.encoder = SAMEncoder(settings.model, checkpoint=False)
        self.decoder = SAMDecoder(self.encoder.model, None)
        self.modules = {'network': self.encoder.network, 'decoder': self.decoder}
        for module in self.modules.values():
            module.requires_grad_(True).train()
        self._scenes = load_scenes('train', settings.scenes, cache)
        self._validation = [split_of('val').scene(index) for index in range(settings.probes)]

    def loss(self) -> tuple[Tensor, dict[str, float]]:
        """The loss of the next step's images."""
        # One number of the generator that is in the checkpoint seeds all the drawing of a step.
        rng = np.random.default_rng(int(torch.randint(2**62, (), generator=self.rng)))
        views = [self._view(rng) for _ in range(self.settings.images)]
        embeddings = self.encoder.network.forward_features(torch.cat([inputs for inputs, _ in views]))
        losses = [
            self._prompted(embedding[None], regions, rng) | {'disagreement': self._disagreement(embedding, regions)}
            for embedding, (_, regions) in zip(embeddings, views, strict=True)
        ]
        means = {name: torch.stack([one[name] for one in losses]).mean() for name in losses[0]}
        total = means['mask'] + means['quality'] + self.settings.contrast * means['disagreement']
        return total, {name: value.item() for name, value in means.items()}

    def _view(self, rng: Generator) -> tuple[Tensor, np.ndarray]:
        """(1, 3, n, n) input and (h, w) regions of a scene, or a part of it, in any orientation and hue."""
        index = rng.integers(len(self._scenes['images']))
        image, regions = self._scenes['images'][index], self._scenes['regions'][index]
        share, smallest = self.settings.zoomed
        if rng.random() < share:
            sides = [int(side * rng.uniform(smallest, 1)) for side in regions.shape]
            top, left = (rng.integers(whole - side + 1) for whole, side in zip(regions.shape, sides, strict=True))
            window = (slice(top, top + sides[0]), slice(left, left + sides[1]))
            image, regions = image[window], regions[window]
        for axis in (0, 1):
            if rng.random() < 0.5:
                image, regions = np.flip(image, axis), np.flip(regions, axis)
        if rng.random() < 0.5:
            image, regions = image.swapaxes(0, 1), regions.T
        pixels = torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float()
        pixels = turn_hue(pixels, self.settings.hue, self.rng).clamp(0, 255)[0].permute(1, 2, 0).byte().numpy()
        return self.encoder.prepare(pixels, self.encoder.model.frame(regions.shape)), np.ascontiguousarray(regions)

    def _disagreement(self, embedding: Tensor, regions: np.ndarray) -> Tensor:
        """How little patches agree with their region. Args: embedding (D, g, g); regions (h, w)."""
        model = self.encoder.model
        height, width = (max(1, side // model.patch) for side in model.frame(regions.shape))
        return disagreement(embedding[:, :height, :width], patch_owners(regions, (height, width)))

    def _prompted(self, embedding: Tensor, regions: np.ndarray, rng: Generator) -> dict[str, Tensor]:
        """The losses of prompts of one kind about an image."""
        kind = KINDS[rng.choice(len(KINDS), p=self.settings.kinds)]
        rounds: list[tuple[int, dict[str, Tensor]]] = []
        for prompts in ask(regions, kind, self.decoder, rng, self.settings.asking):
            logits, quality = prompts.answer(self.decoder, embedding)
            rounds.append((len(logits), prompt_losses(logits, quality, prompts.targets, prompts.ambiguous)))
            if prompts.mask is None and rng.random() < self.settings.again:
                rounds.append((len(logits), self._again(prompts, embedding, logits, quality, rng)))
        total = sum(count for count, _ in rounds)
        return {name: sum(count * losses[name] for count, losses in rounds) / total for name in rounds[0][1]}

    def _again(
        self, prompts: Prompts, embedding: Tensor, logits: Tensor, quality: Tensor, rng: Generator
    ) -> dict[str, Tensor]:
        """The losses of a second round, which is told the answers of the first and where they are wrong."""
        best = 1 + quality[:, 1:].argmax(1) if prompts.ambiguous else torch.zeros(len(quality), dtype=torch.long)
        answers = logits[torch.arange(len(logits)), best]
        prompts = prompts.corrected(answers, self.encoder.model, rng)
        return prompt_losses(*prompts.answer(self.decoder, embedding), prompts.targets, prompts.ambiguous)

    def probe(self) -> dict[str, float]:
        """Figures on val scenes."""
        return probe(self.encoder, self.decoder, self._validation)


def original_names(network: nn.Module, decoder: SAMDecoder) -> dict[str, Tensor]:
    """The weights under the names of the published checkpoints."""
    state = {f'image_encoder.{key.replace("mlp.fc", "mlp.lin")}': v for key, v in network.state_dict().items()}
    return state | decoder.state_dict()


def training_of(task: SAMTask, work_dir: Path) -> Training:
    """The loop that trains a task's networks."""
    settings = task.settings
    return Training(work_dir, settings.steps, task.modules, task.rng, settings.rate, every=settings.every)


def train(out: Path, work_dir: Path, settings: SAMSettings | None = None, resume: bool = True) -> None:
    """Trains and writes the weights, in the layout of the published checkpoints, with their card.

    Args:
        out: The safetensors file.
        work_dir: For the checkpoint and the log; the painted scenes are in its parent, for all trainings.
        settings: What decides the weights.
        resume: Whether to go on from a checkpoint in ``work_dir``.
    """
    settings = settings or SAMSettings()
    task = SAMTask(settings, Path(work_dir).parent)
    training = training_of(task, work_dir)
    if resume:
        training.resume()
    training.run(task.loss, task.probe)
    state = original_names(task.encoder.network, task.decoder)
    write_weights(out, state, training.card('masks of the regions of scenes of the train split', settings))
