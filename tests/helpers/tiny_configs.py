"""Shipped configs with tiny random models in place of the real ones."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from mmengine.config import Config, ConfigDict

from tests.helpers.world import ROOT
from tpa_mmseg.clip.names import ClassNames

CONFIGS = ROOT / 'configs'
WIDTH = 16


def config_path(name: str) -> Path:
    """The config of a name such as ``sclip_vit-b16_voc21``."""
    return CONFIGS / name.partition('_')[0].partition('-')[0] / f'{name}.py'


def load(name: str) -> Config:
    return Config.fromfile(config_path(name))


def shrink(cfg: Config) -> Config:
    """Puts tiny models with the patches of the real ones into a config."""
    host = innermost(cfg.model.host)
    host.text_features = torch.randn(len(class_names(host).queries), WIDTH)
    # ResCLIP reads the blocks 5 to 8.
    layers = 10 if host.get('plugin', {}).get('type') == 'ResCLIP' else 1
    host.clip.update(model=clip(int(host.clip.model.split('-')[2]), layers), pretrained=None)
    encoders = [cfg.model.encoder, *([host.proxy] if 'proxy' in host else [])]
    for encoder in encoders:
        encoder.update(model=vit(encoder.model), pretrained=False)
    if 'sam' in host:
        host.sam.update(model=sam(), checkpoint=False)
    return cfg


def innermost(host: ConfigDict) -> ConfigDict:
    """The config of the host itself, without what goes around it."""
    return innermost(host.host) if 'host' in host else host


def class_names(host: ConfigDict) -> ClassNames:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # some original lists have a name in two classes
        return ClassNames.read(host.class_names)


def clip(patch: int, layers: int) -> dict:
    """open_clip's config of a CLIP."""
    vision = {'image_size': 2 * patch, 'patch_size': patch, 'layers': layers, 'width': WIDTH, 'head_width': 8}
    return {
        'embed_dim': WIDTH,
        'vision_cfg': vision,
        'text_cfg': {'context_length': 8, 'vocab_size': 8, 'width': WIDTH, 'heads': 1, 'layers': 1},
    }


def vit(name: str) -> dict:
    """timm's arguments of a vision transformer with the patch that a name speaks of."""
    patch = int(name.partition('patch')[2].partition('_')[0].partition('.')[0])
    model = {'img_size': 2 * patch, 'patch_size': patch, 'embed_dim': WIDTH, 'depth': 1, 'num_heads': 2}
    return {'type': 'VisionTransformerSAM', **model} if name.startswith('samvit') else model


def sam() -> dict:
    """The dimensions of a whole SAM."""
    return {
        'embed_dim': WIDTH,
        'depth': 1,
        'num_heads': 2,
        'global_attn_indexes': (0,),
        'image_size': 64,
        'prompt_dim': WIDTH,
        'decoder_heads': 2,
        'decoder_mlp': WIDTH,
        'iou_hidden': WIDTH,
        'mask_in_chans': 4,
    }
