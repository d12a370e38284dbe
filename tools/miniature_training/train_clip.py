"""Trains the miniature CLIP on pictures and their captions."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import open_clip
import torch
import torch.nn.functional as F
from open_clip.transformer import PatchDropout
from torch import Tensor, nn

from tpa_mmseg.miniature.world import CLASSES
from tpa_mmseg.weights.files import load_into, load_state_dict

from .captions import CONTEXT, TEMPLATES, caption, tokenizer, vocabulary
from .cards import WEIGHTS, write_weights
from .probe import class_shares, mean_recall, patch_labels
from .training import Training, load_scenes
from .views import Views, turn_hue


@dataclass(frozen=True)
class CLIPSettings:
    """Everything that decides the weights; ``configs/_base_/miniature_training.py`` has the numbers.

    Attributes:
        patch: Side of a patch.
        image_size: Side of the square input.
        width: Of the image tower; its heads have 32 channels.
        layers: Of the image tower.
        steps: Of training.
        batch: Pictures, and captions, of a step.
        scenes: How many scenes of the train split are painted.
        sides: Smallest and largest side of a view in pixels of a scene.
        hue: Share of the views whose hues are turned.
        dropped: Share of the patches left out while training ...
        dropped_until: ... up to this share of the steps.
        rate: Highest learning rate.
        scales: Pairs of a share of the steps and the logit scale there; between them it rises geometrically. The last
            one decides how much the cosines of a patch differ between classes.
        visible: Share of a picture from which on a class counts as visible.
        cone: How long the part is that all embeddings of a tower have in common at the start, against the part that
            tells them apart. Large CLIPs begin like that and stay so: their cosines lie in a narrow range.
        start: Weights to start from, by the name of their file; with another patch, its kernels are cut. Empty to start
            from chance.
        seed: Of everything random.
    """

    patch: int
    image_size: int
    width: int
    layers: int
    steps: int
    batch: int
    scenes: int
    sides: tuple[float, float]
    hue: float
    dropped: float
    dropped_until: float
    rate: float
    scales: tuple[tuple[float, float], ...]
    visible: float
    cone: float
    start: str
    seed: int


def model_config(settings: CLIPSettings) -> dict:
    """The model in the form of open_clip's configs, which ``clip=dict(model=...)`` takes."""
    return {
        'embed_dim': 64,
        'quick_gelu': True,
        'vision_cfg': {
            'image_size': settings.image_size,
            'patch_size': settings.patch,
            'width': settings.width,
            'layers': settings.layers,
            'head_width': 32,
        },
        'text_cfg': {'context_length': CONTEXT, 'vocab_size': vocabulary()[1], 'width': 64, 'heads': 2, 'layers': 2},
    }


class CLIPTask:
    """The contrastive task: which caption fits which picture."""

    def __init__(self, settings: CLIPSettings, cache: Path) -> None:
        self.settings = settings
        torch.manual_seed(settings.seed)
        self.rng = torch.Generator().manual_seed(settings.seed + 1)
        self._tokenize = tokenizer()
        self.model = self._build()
        self.scenes = load_scenes('train', settings.scenes, cache)
        self._validation = load_scenes('val', 100, cache)
        statistics = (open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD)
        self._mean, self._std = (torch.tensor(values).view(3, 1, 1) for values in statistics)

    def _build(self) -> open_clip.CLIP:
        model = open_clip.CLIP(**model_config(self.settings))
        model.visual.patch_dropout = PatchDropout(self.settings.dropped)
        model.logit_scale.requires_grad_(False)
        if self.settings.start:
            _start(model, WEIGHTS / f'{self.settings.start}.safetensors')
        elif self.settings.cone:
            _narrow(model.visual.ln_post, model.visual.proj, self.settings.cone)
            _narrow(model.ln_final, model.text_projection, self.settings.cone)
        return model

    def loss(self, step: int) -> tuple[Tensor, dict[str, float]]:
        """The loss of a step's batch."""
        settings = self.settings
        self._schedule(step / settings.steps)
        chance = random.Random(settings.seed * settings.steps + step)
        images, visible = self._pictures()
        named = [self._named(classes, chance) for classes in visible]
        texts = [caption(classes, chance) for classes in named]
        mentioned = torch.zeros(len(named), len(CLASSES), dtype=torch.bool)
        for row, classes in enumerate(named):
            mentioned[row, classes] = True
        # A caption fits every picture that shows all it mentions.
        absent = mentioned.float() @ (~visible.T).float()
        fits = (absent == 0).float().T
        image = F.normalize(self.model.visual(images), dim=-1)
        text = F.normalize(self.model.encode_text(self._tokenize(texts)), dim=-1)
        logits = self.model.logit_scale.exp() * image @ text.T
        loss = _several_positives(logits, fits) / 2 + _several_positives(logits.T, fits.T) / 2
        right = fits.gather(1, logits.argmax(1, keepdim=True)).mean()
        return loss, {'fitting': right.item()}

    def _schedule(self, progress: float) -> None:
        shares, scales = zip(*self.settings.scales, strict=True)
        self.model.logit_scale.data.fill_(float(np.interp(progress, shares, np.log(scales))))
        self.model.visual.patch_dropout.prob = self.settings.dropped if progress < self.settings.dropped_until else 0.0

    def _pictures(self) -> tuple[Tensor, Tensor]:
        """(B, 3, s, s) normalized pictures and (B, classes) which classes they show."""
        settings = self.settings
        index = torch.randint(len(self.scenes['images']), (settings.batch,), generator=self.rng).numpy()
        images = torch.from_numpy(self.scenes['images'][index]).permute(0, 3, 1, 2).float() / 255
        labels = torch.from_numpy(self.scenes['labels'][index]).float()[:, None]
        views = Views.draw(settings.batch, self.rng, settings.sides, 0.3, images.shape[2:])
        images = turn_hue(views.take(images, settings.image_size), settings.hue, self.rng).clamp(0, 1)
        return (images - self._mean) / self._std, class_shares(
            views.take(labels, 32, 'nearest').flatten(1)
        ) > settings.visible

    @staticmethod
    def _named(visible: Tensor, chance: random.Random) -> list[int]:
        """Up to four of the visible classes, in any order."""
        classes = visible.nonzero().flatten().tolist()
        chance.shuffle(classes)
        return classes[: chance.choices((1, 2, 3, 4), (0.45, 0.25, 0.2, 0.1))[0]]

    def class_texts(self) -> Tensor:
        """(classes, 64) unit vectors of the names in all templates."""
        vectors = []
        for name in CLASSES:
            tokens = self._tokenize([template(name) for template in TEMPLATES])
            vectors.append(F.normalize(self.model.encode_text(tokens), dim=-1).mean(0))
        return F.normalize(torch.stack(vectors), dim=-1)

    def state(self) -> dict[str, Tensor]:
        """The weights, without the mask that open_clip makes itself."""
        return {name: tensor for name, tensor in self.model.state_dict().items() if name != 'attn_mask'}

    def probe(self) -> dict[str, float]:
        """Mean recall over the classes of single patches of val scenes, by the values of the last block."""
        visual, patch, size = self.model.visual, self.settings.patch, self.settings.image_size
        images = torch.from_numpy(self._validation['images']).permute(0, 3, 1, 2).float() / 255
        labels = torch.from_numpy(self._validation['labels']).long()
        found, truth = [], []
        for top in (0, 64):
            for left in (0, 48, 96):
                window = (images[..., top : top + size, left : left + size] - self._mean) / self._std
                found.append((F.normalize(_values(visual, window), dim=-1) @ self.class_texts().T).argmax(-1).flatten())
                truth.append(patch_labels(labels[:, top : top + size, left : left + size], patch).flatten())
        return {'recall': mean_recall(torch.cat(found), torch.cat(truth))}


def _narrow(norm: nn.LayerNorm, projection: Tensor, cone: float) -> None:
    """Gives all embeddings ``norm(x) @ projection`` a common part, ``cone`` times as long as the rest is on average."""
    direction = torch.randn_like(norm.bias)
    with torch.no_grad():
        norm.bias.copy_(cone * projection.norm() / (direction @ projection).norm() * direction)


def _start(model: open_clip.CLIP, path: Path) -> None:
    """Takes the weights of a file, whose patches may be larger: their positions on the grid stay what they are."""
    state = {name: tensor.float() for name, tensor in load_state_dict(path).items()}
    side = model.visual.conv1.weight.shape[-1]
    state['visual.conv1.weight'] = state['visual.conv1.weight'][..., :side, :side]
    load_into(model, state, path, unused=('attn_mask',), model='the miniature CLIP')


def _several_positives(logits: Tensor, fits: Tensor) -> Tensor:
    """Cross-entropy of each row against all that fits it, in equal shares."""
    return -(fits / fits.sum(1, keepdim=True) * logits.log_softmax(1)).sum(1).mean()


def _values(visual: nn.Module, images: Tensor) -> Tensor:
    """(B, patches, embed) embedding of each patch by its own value in the last block."""
    tokens = visual.ln_pre(visual._embeds(images))
    *blocks, last = visual.transformer.resblocks
    for block in blocks:
        tokens = block(tokens)
    attention = last.attn
    values = F.linear(
        last.ln_1(tokens[:, 1:]), *(part.chunk(3)[2] for part in (attention.in_proj_weight, attention.in_proj_bias))
    )
    return visual.ln_post(attention.out_proj(values)) @ visual.proj


def train(out: Path, work_dir: Path, settings: CLIPSettings, resume: bool = True) -> None:
    """Trains and writes the weights.

    Args:
        out: The safetensors file.
        work_dir: For the painted scenes, the checkpoint and the log.
        settings: What decides the weights.
        resume: Whether to go on from a checkpoint in ``work_dir``.
    """
    task = CLIPTask(settings, Path(work_dir).parent)
    training = Training(work_dir, settings.steps, {'clip': task.model}, task.rng, settings.rate)
    if resume:
        training.resume()
    training.run(lambda: task.loss(training.step), task.probe)
    card = training.card('captions of the scenes of the train split', settings)
    write_weights(out, task.state(), card, {'words': json.dumps(vocabulary()[0])})
