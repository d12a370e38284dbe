"""Which weights a config needs: read off its model, without building it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import open_clip
import timm
from mmseg.registry import MODELS

from ..errors import TPAError
from ..sam.model import PUBLISHED
from .sources import CLIPWeights, OwnFile, SAMWeights, TimmWeights, Weights


def needs(model: Any, place: str = 'model') -> Iterator[tuple[str, Weights]]:
    """The weights that a model's config asks for, with the place where it does.

    Args:
        model: The config, or a part of it.
        place: Where that part is.
    """
    if isinstance(model, (list, tuple)):
        for index, part in enumerate(model):
            yield from needs(part, f'{place}.{index}')
    if not isinstance(model, Mapping):
        return
    settings = {**_defaults(model.get('type')), **model}
    if model.get('type') == 'TimmEncoder':
        yield from _timm_needs(settings, place)
    if model.get('type') == 'SegmentorHost' and settings.get('checkpoint'):
        yield f'{place}.checkpoint', OwnFile(settings['checkpoint'], settings['segmentor'].get('type', 'segmentor'))
    for key, value in settings.items():
        if key == 'clip' and isinstance(value, Mapping):
            yield from _clip_needs(value, f'{place}.clip')
        elif key == 'sam':
            yield from _sam_needs(value or {}, f'{place}.sam')
        else:
            yield from needs(value, f'{place}.{key}')


def _clip_needs(clip: Mapping, place: str) -> Iterator[tuple[str, Weights]]:
    model, pretrained = clip.get('model'), clip.get('pretrained')
    if pretrained is None:
        return
    if isinstance(model, str) and open_clip.get_pretrained_cfg(model.replace('/', '-'), pretrained):
        yield place, CLIPWeights(model, pretrained)
    else:
        yield place, OwnFile(pretrained, 'CLIP')


def _timm_needs(encoder: Mapping, place: str) -> Iterator[tuple[str, Weights]]:
    model, pretrained = encoder['model'], encoder['pretrained']
    if pretrained is False:
        return
    if not isinstance(model, str):
        yield place, OwnFile(pretrained, model.get('type', 'VisionTransformer'))
        return
    name = model if pretrained is True else f'{model.partition(".")[0]}.{pretrained}'
    if timm.is_model_pretrained(name):
        yield place, TimmWeights(name)
    elif pretrained is not True:
        yield place, OwnFile(pretrained, model)
    else:
        raise TPAError(f'{place}: timm {timm.__version__} has no weights for {name!r}; correct the name.')


def _sam_needs(sam: Mapping, place: str) -> Iterator[tuple[str, Weights]]:
    model, checkpoint = sam.get('model', 'vit_b'), sam.get('checkpoint')
    if checkpoint is False:
        return
    if checkpoint is None and isinstance(model, str) and model in PUBLISHED:
        yield place, SAMWeights(model)
    elif checkpoint is not None:
        yield place, OwnFile(checkpoint, 'SAM')


def _defaults(name: str | type | None) -> dict[str, Any]:
    """What a registered class takes where a config is silent."""
    found = MODELS.get(name) if isinstance(name, str) else name
    parameters = inspect.signature(found).parameters.values() if found else ()
    return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}
