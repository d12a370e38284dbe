"""Which weights a config needs: read off its model, without building it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import open_clip
import timm
from mmseg.registry import MODELS

from ..catalog import sam_weights
from ..errors import TPAError
from .sources import Source, clip_source, own_file, sam_source, timm_source


class Need(NamedTuple):
    """Weights that a config asks for.

    Attributes:
        place: Where it does, e.g. ``model.host.clip``.
        source: The weights.
        part: That part of the config, from which the model of the weights can be built.
    """

    place: str
    source: Source
    part: Mapping


def needs(model: Any, place: str = 'model') -> Iterator[Need]:
    """Yields the weights that a model's config asks for.

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
        source = _timm_source(settings, place)
        yield from [] if source is None else [Need(place, source, model)]
    if model.get('type') == 'SegmentorHost' and settings.get('checkpoint'):
        source = own_file(settings['checkpoint'], settings['segmentor'].get('type', 'segmentor'))
        yield Need(f'{place}.checkpoint', source, model)
    for key, value in settings.items():
        if key == 'clip' and isinstance(value, Mapping):
            source = _clip_source(value)
        elif key == 'sam':
            value = value or {}
            source = _sam_source(value)
        else:
            yield from needs(value, f'{place}.{key}')
            continue
        yield from [] if source is None else [Need(f'{place}.{key}', source, value)]


def _clip_source(clip: Mapping) -> Source | None:
    model, pretrained = clip.get('model'), clip.get('pretrained')
    if pretrained is None:
        return None
    if isinstance(model, str) and open_clip.get_pretrained_cfg(model.replace('/', '-'), pretrained):
        return clip_source(model.replace('/', '-'), pretrained)
    return own_file(pretrained, 'CLIP')


def _timm_source(encoder: Mapping, place: str) -> Source | None:
    model, pretrained = encoder['model'], encoder['pretrained']
    if pretrained is False:
        return None
    if not isinstance(model, str):
        return own_file(pretrained, model.get('type', 'VisionTransformer'))
    name = model if pretrained is True else f'{model.partition(".")[0]}.{pretrained}'
    if timm.is_model_pretrained(name):
        return timm_source(name)
    if pretrained is True:
        raise TPAError(f'{place}: timm {timm.__version__} has no weights for {name!r}; correct the name.')
    return own_file(pretrained, model)


def _sam_source(sam: Mapping) -> Source | None:
    model, checkpoint = sam.get('model', 'vit_b'), sam.get('checkpoint')
    if checkpoint is None and isinstance(model, str) and sam_weights(model):
        return sam_source(model)
    return own_file(checkpoint, 'SAM') if checkpoint else None


def _defaults(name: str | type | None) -> dict[str, Any]:
    """Returns the values that a registered class takes for what a config leaves out."""
    found = MODELS.get(name) if isinstance(name, str) else name
    parameters = inspect.signature(found).parameters.values() if found else ()
    return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}
