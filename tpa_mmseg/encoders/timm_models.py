"""timm networks by name or config, with weights from a file, the weights folder or the hub."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import timm
import timm.models
from timm.models.vision_transformer_sam import VisionTransformerSAM
from torch import Tensor, nn

from ..errors import TPAError
from ..weights.files import SUFFIXES, does_not_fit, load_into, load_state_dict, local_path, misfit
from ..weights.sources import timm_source

# Entries of files beyond an encoder: classifiers, poolings, MAE's decoder and its tokens for masked patches.
_BEYOND_ENCODER = ('head', 'fc_norm', 'attn_pool', 'decoder', 'mask_token')


def build_network(model: str | Mapping, pretrained: bool | str | os.PathLike) -> nn.Module:
    """Builds a vision transformer without a classifier.

    Args:
        model: A timm name with or without a tag, or a dict with the ``type`` of a timm class (``VisionTransformer``
            unless given) and the arguments of its constructor.
        pretrained: True for the weights of the name's tag, another tag, a file, or False for random weights.
    """
    path = _as_path(pretrained)
    if not isinstance(model, str):
        if pretrained and path is None:
            raise TPAError(
                f'A model given as a dict has no weights to download: set pretrained to a file (or to False for random '
                f'weights), not {pretrained!r}.'
            )
        network = _from_config(model)
    else:
        network = _from_name(model, pretrained if isinstance(pretrained, str) and path is None else None)
        if pretrained and path is None:
            path = _downloaded(network)
    if path is not None:
        load_file(network, path)
    return network


def full_name(network: nn.Module) -> str | None:
    """Returns the canonical timm name, e.g. ``vit_base_patch8_224.dino``; None for a network built from a dict."""
    config = getattr(network, 'pretrained_cfg', None)
    return '.'.join(filter(None, (config['architecture'], config.get('tag')))) if config else None


def load_file(network: nn.Module, path: str | os.PathLike) -> None:
    """Loads a file in timm's own format or in that of the original release (DINO, DINOv2, MAE, SAM)."""
    state = load_state_dict(path)
    name = full_name(network) or type(network).__name__
    if isinstance(network, VisionTransformerSAM) and 'patch_embed.proj.weight' in state:
        # timm translates SAM's own names only in a file of the whole SAM, not of the image encoder alone.
        state = {f'image_encoder.{key}': tensor for key, tensor in state.items()}
    misfits = _of_other_geometry(state, network)
    if misfits:
        raise does_not_fit(path, name, misfits)
    # A file of another model may stop the converter anywhere; load_into then reports the tensors that do not fit.
    with suppress(Exception):
        state = _converter(network)(dict(state), network)
    load_into(network, state, path, unused=_BEYOND_ENCODER, model=name)


def _as_path(pretrained: bool | str | os.PathLike) -> Path | None:
    """Returns the file that ``pretrained`` names; None if it is a tag or a bool."""
    if isinstance(pretrained, bool):
        return None
    path = local_path(pretrained)
    return path if path.suffix in SUFFIXES or path.name != str(pretrained) or path.is_file() else None


def _from_name(name: str, tag: str | None) -> nn.Module:
    architecture, _, own_tag = name.partition('.')
    if not timm.is_model(architecture):
        close = difflib.get_close_matches(architecture, timm.list_models(), n=3)
        hint = f'Did you mean {", ".join(close)}?' if close else 'timm.list_models() lists them all.'
        raise TPAError(f'timm {timm.__version__} has no model {name!r}. {hint}')
    tag = tag or own_tag
    tags = [known.partition('.')[2] for known in timm.models.get_arch_pretrained_cfgs(architecture)]
    if tag and tag not in tags:
        raise TPAError(
            f'timm {timm.__version__} has no weights {tag!r} for {architecture}. '
            f'Choose from: {", ".join(tags) or "no tag"}; or set pretrained to a file.'
        )
    create = partial(timm.create_model, f'{architecture}.{tag}' if tag else architecture)
    return _construct(create, name, sam=architecture.startswith('samvit_'))


def _from_config(config: Mapping) -> nn.Module:
    arguments = dict(config)
    name = arguments.pop('type', 'VisionTransformer')
    model = getattr(timm.models, name, None)
    if not isinstance(model, type):
        raise TPAError(f'timm {timm.__version__} has no model class {name!r}: use e.g. VisionTransformer or Eva.')
    return _construct(partial(model, **arguments), name, sam=issubclass(model, VisionTransformerSAM))


def _construct(create: Callable[..., nn.Module], name: str, sam: bool) -> nn.Module:
    """Builds a network without a classifier, for images of any size (SAM: of its one size)."""
    # SAM's own LayerNorms divide with 1e-6, timm's port of it with 1e-5.
    options = {'norm_layer': partial(nn.LayerNorm, eps=1e-6)} if sam else {'dynamic_img_size': True}
    try:
        network = create(num_classes=0, **options)
    except TypeError as error:
        raise TPAError(
            f'Cannot build {name} as an encoder ({error}): use a vision transformer for images of any size, '
            'e.g. vit_base_patch14_dinov2.lvd142m.'
        ) from error
    if not (hasattr(network, 'patch_embed') and hasattr(network, 'blocks')):
        raise TPAError(f'{name} is not a vision transformer: use one, e.g. vit_base_patch14_dinov2.lvd142m.')
    return network


def _converter(network: nn.Module) -> Callable[[dict, nn.Module], dict]:
    """Returns timm's function that converts checkpoints; every module of models there has its own."""
    return getattr(sys.modules[type(network).__module__], 'checkpoint_filter_fn', lambda state, _: state)


def _of_other_geometry(state: Mapping[str, Tensor], network: nn.Module) -> list[str]:
    """Describes a patch kernel or position table of another size, which timm would resample silently."""
    own = network.state_dict()
    misfits = []
    kernel = state.get('patch_embed.proj.weight')
    if kernel is not None and kernel.dim() == 4 and kernel.shape[2:] != own['patch_embed.proj.weight'].shape[2:]:
        misfits.append(misfit('patch_embed.proj.weight', kernel, own['patch_embed.proj.weight']))
    table = state.get('pos_embed')
    if table is not None and table.dim() == 3 and 'pos_embed' in own:
        # Files differ in the number of tokens before the patches that have an entry; timm handles that.
        extra = table.shape[1] - network.patch_embed.num_patches
        if not 0 <= extra <= network.num_prefix_tokens:
            misfits.append(misfit('pos_embed', table, own['pos_embed']))
    return misfits


def _downloaded(network: nn.Module) -> Path:
    """Returns the weights of a named model: in the weights folder, in the hub's cache, or downloaded now."""
    config, name = network.pretrained_cfg, full_name(network)
    if not (config.get('hf_hub_id') or config.get('url')):
        raise TPAError(f'timm has no weights for {name}: set pretrained to a file (or to False for random weights).')
    return timm_source(name).download()
