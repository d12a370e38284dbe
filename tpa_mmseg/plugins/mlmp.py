"""MLMP: multi-level, multi-prompt adaptation of the visual LayerNorms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from mmseg.registry import MODELS
from torch import Tensor

from ..clip.names import ClassNames
from ..clip.source import CLIPSpec
from ..clip.text import template_features as encode_templates
from ..clip.tower import feed_forward, heads, merge_heads
from ..errors import TPAError
from ..hosts import CLIPHost, LastBlockHost
from ..hosts.attention import query_key
from ..hosts.windows import as_map, run_on_windows
from ..options import AtLeastOne, NotNegative, one_of
from .norm_adaptation import NormAdaptation
from .wrapper import entropy

#: The prompts of the original.
TEMPLATES = (
    'itap of a {}',
    'a bad photo of the {}.',
    'a origami {}.',
    'a photo of the large {}.',
    'a {} in a video game.',
    'art of the {}.',
    'a photo of the small {}.',
)


@MODELS.register_module()
class MLMP(NormAdaptation):
    """Minimizes the entropy of every prompt on several layers together, then predicts with the most certain layers.

    During adaptation the attention outputs of the layers are averaged, and each template is a separate classifier of
    the patches and of CLIP's class token. For the prediction, each window weights its layers by their entropy, and the
    templates are averaged. With ``steps=0`` there is only the prediction. The host's ``logit_scale`` is used
    throughout; the original uses CLIP's own, 100.

    Args:
        host: Config of the host. MLMP's ``templates`` replace those of a host with ``class_names``; ready-made
            ``text_features``, and those of a host that is already built, are a single template.
        templates: Prompt templates.
        template_features: Ready-made (T, Q, E) features of the host's queries in every template.
        layers: Number of last blocks. Default: three quarters of the blocks if the output of the host's last block is
            that of its attention alone (NACLIP, ClearCLIP), otherwise one.
        cls_weight: Weight of the class token's entropy.
        prompt_integration: ``'loss'``: an entropy for each template. ``'text'``: the ablation in which templates are
            averaged from the start and the class token does not count.
        scope: ``'image'``, or ``'batch'`` as in the original, which has batches of two images. Several ranks then give
            the scores of one if the data loader has a :class:`~tpa_mmseg.datasets.WholeBatchSampler`.
        **kwargs: As for :class:`NormAdaptation`.
    """

    scopes = ('image', 'batch')

    def __init__(
        self,
        host: dict | CLIPHost,
        templates: Sequence[str] = TEMPLATES,
        template_features: Tensor | None = None,
        layers: AtLeastOne | None = None,
        cls_weight: NotNegative = 1.0,
        prompt_integration: Literal['loss', 'text'] = 'loss',
        **kwargs,
    ) -> None:
        if template_features is None:
            template_features = _encode(host, templates)
        if template_features is not None:
            template_features = F.normalize(torch.as_tensor(template_features).float(), dim=-1)
            host = _with_text(host, template_features)
        super().__init__(host, **kwargs)
        each = self.host.text_features[None].clone() if template_features is None else template_features
        self.register_buffer('template_features', each)
        self.prompt_integration = one_of('MLMP.prompt_integration', prompt_integration, ('loss', 'text'))
        self.cls_weight = 0.0 if prompt_integration == 'text' else float(cls_weight)
        self.layers = self._count_layers(layers)

    def _count_layers(self, layers: int | None) -> int:
        blocks = len(self.host.tower.blocks)
        if layers is None:
            return max(1, round(0.75 * blocks)) if self._attention_only else 1
        if not 1 <= layers <= blocks:
            raise TPAError(f'MLMP.layers must be between 1 and {blocks}, not {layers}.')
        if layers > 1 and not self._attention_only:
            raise TPAError(
                f'MLMP.layers is {layers}, but the output of the last block of {type(self.host).__name__} is not that '
                'of its attention alone and cannot be mixed with other layers: set layers to 1.'
            )
        return layers

    @property
    def _plain_last_block(self) -> bool:
        """Whether the host's features are the output of its last block, without a plug-in."""
        host = self.host
        return isinstance(host, LastBlockHost) and host.last_n_layers == 1 and getattr(host, 'plugin', None) is None

    @property
    def _attention_only(self) -> bool:
        return self._plain_last_block and not self.host.residual

    def objective(self, images: Tensor) -> Tensor:
        patches, token = self.loss_logits(images)
        losses = entropy(patches, dim=2).mean((0, 2, 3))
        return losses if token is None else losses + self.cls_weight * entropy(token, dim=2).mean(0)

    def loss_logits(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        """Computes the logits whose entropy is minimized.

        Args:
            images: (B, 3, h, w) windows.

        Returns:
            (T, B, Q, gh, gw) logits of the patches, and (T, B, Q) of the class token; None if its weight is zero.
        """
        tower, token = self.host.tower, None
        with tower.autocast():
            if self._plain_last_block:
                outputs, tokens = self.layer_outputs(images)
                features = self._project(sum(outputs) / len(outputs), images)
                after = tower.blocks[-1](tokens) if self.cls_weight else None
            else:
                # The tokens that enter the last block of such a host are not available, so the tower runs twice.
                features = self.host.features(images)
                after = tower.trunk(images, leave=0) if self.cls_weight else None
            if after is not None:
                token = tower.project(after[:, 0])
        text = self.template_features if self.prompt_integration == 'loss' else self.host.text_features[None]
        token = None if token is None else self._logits(token[:, :, None, None], text)[..., 0, 0]
        return self._logits(features, text), token

    def layer_outputs(self, images: Tensor) -> tuple[list[Tensor], Tensor]:
        """Computes the outputs of the layers before they are added to the tokens.

        Args:
            images: (B, 3, h, w) windows.

        Returns:
            For each layer its (B, 1 + gh gw, D) attention output, for the last one the output of the host's last
            block; and the tokens that enter the last block.
        """
        tokens = self.host.tower.trunk(images, leave=self.layers)
        *before, last = self.host.tower.blocks[-self.layers :]
        outputs = []
        for block in before:
            outputs.append(merge_heads(block, query_key(*heads(block, tokens))))
            tokens = feed_forward(block, tokens + outputs[-1])
        return [*outputs, self.host.last_block(last, tokens, self._grid(images))], tokens

    def score_adapted(self, windows: list[list[Tensor]]) -> list[list[Tensor]]:
        if self.layers == 1:
            return super().score_adapted(windows)
        return run_on_windows(self.fused_scores, windows, self.host.windows_per_call)

    def fused_scores(self, images: Tensor) -> Tensor:
        """(B, 3, h, w) windows -> (B, Q, gh, gw) cosines of the layers' weighted sum with the averaged templates."""
        with self.host.tower.autocast():
            outputs = torch.stack(self.layer_outputs(images)[0])
        weights = self.layer_weights(outputs, images)
        with self.host.tower.autocast():
            features = self._project((weights[:, :, None, None] * outputs).sum(0), images)
        return self.host.cosines(features)

    def layer_weights(self, outputs: Tensor, images: Tensor) -> Tensor:
        """Computes the weights of the layers in each window.

        Args:
            outputs: (layers, B, 1 + gh gw, D) attention outputs.
            images: (B, 3, h, w) windows.

        Returns:
            (layers, B) weights that sum to one over the layers: the softmax of their negative mean entropies.
        """
        entropies = []
        for output in outputs:
            with self.host.tower.autocast():
                features = self._project(output, images)
            entropies.append(entropy(self.host.logit_scale * self.host.cosines(features), dim=1).mean((1, 2)))
        return torch.stack(entropies).neg().softmax(0)

    def _logits(self, features: Tensor, text: Tensor) -> Tensor:
        """(B, E, h, w) features and (T, Q, E) text -> (T, B, Q, h, w)."""
        cosines = self.host.cosines(features, text.flatten(0, 1))
        return self.host.logit_scale * cosines.unflatten(1, text.shape[:2]).transpose(0, 1)

    def _project(self, output: Tensor, images: Tensor) -> Tensor:
        """(B, 1 + gh gw, D) output of a layer -> (B, E, gh, gw) features."""
        return as_map(self.host.tower.project(output[:, 1:]), self._grid(images))

    def _grid(self, images: Tensor) -> tuple[int, int]:
        return self.host.tower.grid(tuple(images.shape[-2:]))

    def settings(self) -> dict:
        names = ('layers', 'cls_weight', 'prompt_integration')
        return {**super().settings(), **{name: getattr(self, name) for name in names}}


def _encode(host: dict | CLIPHost, templates: Sequence[str]) -> Tensor | None:
    """(T, Q, E) features of a host's class names in every template; None if its text features are ready-made."""
    if not isinstance(host, Mapping) or host.get('text_features') is not None or host.get('class_names') is None:
        return None
    queries = ClassNames.read(host['class_names']).queries
    return encode_templates(CLIPSpec.of(host['clip']), queries, tuple(templates))


def _with_text(host: dict | CLIPHost, features: Tensor) -> dict:
    """The config of a host whose text is the mean of all templates. Args: features: (T, Q, E) unit vectors."""
    if not isinstance(host, Mapping):
        raise TPAError('MLMP.template_features requires a host given as a config, not one that is already built.')
    if features.ndim != 3:
        raise TPAError(
            f'MLMP.template_features must have the shape (templates, queries, channels), not {tuple(features.shape)}.'
        )
    return {**{key: value for key, value in host.items() if key != 'templates'}, 'text_features': features.mean(0)}
