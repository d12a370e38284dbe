"""Trains the miniature encoder without labels: nearby points of a scene should look alike, distant ones different."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import timm
import torch
import torch.nn.functional as F
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from torch import Tensor, nn

from tpa_mmseg.miniature.world import IGNORED

from .cards import write_weights
from .probe import mean_recall, patch_labels
from .training import Training, load_scenes
from .views import Views, grid_points, other_light

_FAR = -1e4


@dataclass(frozen=True)
class EncoderSettings:
    """Everything that decides the weights; ``configs/_base_/miniature_training.py`` has the numbers.

    Attributes:
        patch: Side of a patch.
        width: Channels; the heads have 32.
        layers: Of the network.
        steps: Of training.
        batch: Scenes of a step; there are two views of each.
        scenes: How many scenes of the train split are painted.
        view: Patches along a side of a view.
        sides: Smallest and largest side of a view in pixels of a scene.
        near: Two points at most this far apart, in pixels, should look alike.
        far: Two points of a scene at least this far apart should look different.
        temperature: Of the contrast.
        across: Weight of the contrast with points of other scenes.
        clusters: How many clusters.
        clustering: Weight of the clusters.
        rate: Highest learning rate.
        seed: Of everything random.
    """

    patch: int
    width: int
    layers: int
    steps: int
    batch: int
    scenes: int
    view: int
    sides: tuple[float, float]
    near: float
    far: float
    temperature: float
    across: float
    clusters: int
    clustering: float
    rate: float
    seed: int


def model_config(settings: EncoderSettings) -> dict:
    """The model as ``TimmEncoder(model=...)`` takes it."""
    return {
        'img_size': settings.view * settings.patch,
        'patch_size': settings.patch,
        'embed_dim': settings.width,
        'depth': settings.layers,
        'num_heads': settings.width // 32,
    }


class EncoderTask:
    """Contrast between points of two views of a scene, and clusters over all scenes."""

    def __init__(self, settings: EncoderSettings, cache: Path) -> None:
        self.settings = settings
        torch.manual_seed(settings.seed)
        self.rng = torch.Generator().manual_seed(settings.seed + 2)
        config = model_config(settings)
        self.network = timm.models.VisionTransformer(**config, num_classes=0, dynamic_img_size=True)
        # A patch looks the same wherever it is: the table of positions stays empty.
        self.network.pos_embed.data.zero_()
        self.network.pos_embed.requires_grad_(False)
        _cosines(self.network.patch_embed.proj.weight.data)
        self.clusters = nn.Linear(settings.width, settings.clusters, bias=False)
        self._images = load_scenes('train', settings.scenes, cache)['images']
        self._validation = load_scenes('val', 100, cache)
        statistics = (IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD)
        self._mean, self._std = (torch.tensor(values).view(3, 1, 1) for values in statistics)

    def features(self, images: Tensor) -> Tensor:
        """(B, patches, D) unit features of (B, 3, H, W) images from 0 to 1."""
        return F.normalize(self.network.forward_features((images - self._mean) / self._std)[:, 1:], dim=-1)

    def loss(self, step: int) -> tuple[Tensor, dict[str, float]]:
        """The loss of a step's batch."""
        settings = self.settings
        index = torch.randint(len(self._images), (settings.batch,), generator=self.rng).numpy()
        scenes = torch.from_numpy(self._images[index]).permute(0, 3, 1, 2).float() / 255
        first, second = self._two_views(scenes.shape[2:])
        side = settings.view * settings.patch
        views = torch.cat([other_light(view.take(scenes, side), self.rng) for view in (first, second)])
        features, others = self.features(views).chunk(2)
        pixels = first.pixels(grid_points(settings.view))
        partners = pixels + self._nearby(pixels.shape)
        points = second.points(partners)
        inside = (points.abs() < 0.92).all(-1)
        grid = others.transpose(1, 2).unflatten(2, (settings.view, settings.view))
        others = F.grid_sample(grid, points[:, :, None], align_corners=False)[..., 0].transpose(1, 2)
        others = F.normalize(others, dim=-1)
        within = self._within(features, others, pixels, partners, inside)
        chosen = inside.flatten().nonzero().flatten()
        chosen = chosen[torch.randperm(len(chosen), generator=self.rng)[:1024]]
        one, two = features.flatten(0, 1)[chosen], others.flatten(0, 1)[chosen]
        across = self._across(one, two, chosen // settings.view**2)
        clustering = self._clustering(one, two)
        weight = settings.clustering * min(1.0, max(0.0, (step / settings.steps - 0.2) * 10))
        loss = within + settings.across * across + weight * clustering
        return loss, {'within': within.item(), 'across': across.item(), 'clustering': clustering.item()}

    def _two_views(self, size: tuple[int, int]) -> tuple[Views, Views]:
        settings = self.settings
        first = Views.draw(settings.batch, self.rng, settings.sides, 0.6, size)
        center = first.center + (torch.rand(settings.batch, 2, generator=self.rng) - 0.5) * 28
        return first, Views.draw(settings.batch, self.rng, settings.sides, 0.6, size, center)

    def _nearby(self, shape: tuple[int, ...]) -> Tensor:
        """Random steps of at most ``near`` pixels."""
        angle = torch.rand(shape[:2], generator=self.rng) * 2 * math.pi
        length = torch.rand(shape[:2], generator=self.rng) * self.settings.near
        return torch.stack([angle.cos() * length, angle.sin() * length], -1)

    def _within(self, features: Tensor, others: Tensor, pixels: Tensor, partners: Tensor, inside: Tensor) -> Tensor:
        """Each point finds its partner among the distant points of its own scene."""
        logits = features @ others.transpose(1, 2) / self.settings.temperature
        diagonal = torch.eye(logits.shape[1], dtype=torch.bool)
        unfit = (torch.cdist(pixels, partners) < self.settings.far) | ~inside[:, None]
        logits = logits.masked_fill(unfit & ~diagonal, _FAR)
        return -logits.log_softmax(-1).diagonal(dim1=1, dim2=2)[inside].mean()

    def _across(self, one: Tensor, two: Tensor, scene: Tensor) -> Tensor:
        """Each point finds its partner among the points of other scenes."""
        logits = one @ two.T / self.settings.temperature
        target = torch.arange(len(scene))
        unfit = (scene[:, None] == scene) & (target[:, None] != target)
        logits = logits.masked_fill(unfit, _FAR)
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2

    def _clustering(self, one: Tensor, two: Tensor) -> Tensor:
        """A point belongs to the cluster that its partner is assigned to; all clusters get the same share of points."""
        centers = F.normalize(self.clusters.weight, dim=-1)
        scores = one @ centers.T, two @ centers.T
        assigned = [_assign(score.detach()) for score in scores]
        losses = [
            -(target * (score / 0.1).log_softmax(1)).sum(1).mean()
            for target, score in zip(assigned[::-1], scores, strict=True)
        ]
        return (losses[0] + losses[1]) / 2

    def probe(self) -> dict[str, float]:
        """Recall of patches of val scenes by the nearest mean of each class over other val scenes: a diagnostic."""
        images = torch.from_numpy(self._validation['images']).permute(0, 3, 1, 2).float() / 255
        features = torch.cat([self.features(part) for part in images.split(20)])
        truth = patch_labels(torch.from_numpy(self._validation['labels']), self.settings.patch).flatten(1)
        half = len(truth) // 2
        known, classes = features[:half].flatten(0, 1), truth[:half].flatten()
        means = torch.stack([known[classes == index].mean(0) for index in classes.unique() if index != IGNORED])
        means = F.normalize(means - means.mean(0), dim=-1)
        found = (features[half:].flatten(0, 1) @ means.T).argmax(1)
        return {'recall': mean_recall(found, truth[half:].flatten())}


def _assign(scores: Tensor, sharpness: float = 20, rounds: int = 3) -> Tensor:
    """Soft assignments of points to clusters of about equal size (Sinkhorn's algorithm)."""
    shares = ((scores - scores.max()) * sharpness).exp()
    for _ in range(rounds):
        shares = shares / shares.sum(0, keepdim=True).clamp_min(1e-9)
        shares = shares / shares.sum(1, keepdim=True).clamp_min(1e-9)
    return shares


def _cosines(kernels: Tensor) -> None:
    """Starts the patch projection with waves of rising frequency, in brightness and in two colors."""
    count, _, side, _ = kernels.shape
    steps = torch.arange(side)
    waves = torch.cos(math.pi * (steps + 0.5) * steps[:, None] / side) * (2 / side) ** 0.5
    waves[0] *= 0.5**0.5
    planes = torch.einsum('ai,bj->abij', waves, waves).flatten(0, 1)
    order = (steps[:, None] + steps).flatten().argsort(stable=True)
    tints = F.normalize(torch.tensor([[1.0, 1, 1], [1, -1, 0], [1, 1, -2]]), dim=1)
    gray = [planes[index] * tints[0, :, None, None] for index in order]
    colored = [planes[index] * tint[:, None, None] for index in order[:16] for tint in tints[1:]]
    start = torch.stack(gray + colored)[:count]
    kernels[: len(start)] = start * 0.7


def train(out: Path, work_dir: Path, settings: EncoderSettings, resume: bool = True) -> None:
    """Trains and writes the weights.

    Args:
        out: The safetensors file.
        work_dir: For the checkpoint and the log; the painted scenes are kept beside it.
        settings: What decides the weights.
        resume: Whether to go on from a checkpoint in ``work_dir``.
    """
    task = EncoderTask(settings, Path(work_dir).parent)
    modules = {'network': task.network, 'clusters': task.clusters}
    training = Training(work_dir, settings.steps, modules, task.rng, settings.rate)
    if resume:
        training.resume()
    training.run(lambda: task.loss(training.step), task.probe)
    write_weights(out, task.network.state_dict(), training.card('the pictures of the train split, no labels', settings))
