"""Every host that the contract test checks, built tiny and random.

A new host adds a line to :data:`ZOO`: a function that takes options of the host and returns it. The hosts must have
:data:`NUM_CLASSES` classes, and give the same weights each time they are built after the same seed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tpa_mmseg.hosts import CLIP, GEM, NACLIP, SCLIP, ClearCLIP, Host, MaskCLIP, ProxyCLIP, Trident
from tpa_mmseg.plugins import LAME, MLMP, T3A, TENT

NUM_CLASSES = 3
PREPROCESSOR = {
    'type': 'TPADataPreProcessor',
    'mean': [122.771, 116.746, 104.094],
    'std': [68.501, 66.632, 70.323],
    'bgr_to_rgb': True,
}
TINY_CLIP = {
    'embed_dim': 16,
    'quick_gelu': True,
    'vision_cfg': {'image_size': 32, 'patch_size': 8, 'layers': 3, 'width': 32, 'head_width': 16},
    'text_cfg': {'context_length': 77, 'vocab_size': 49408, 'width': 16, 'heads': 1, 'layers': 1},
}


def clip_options(precision: str = 'auto') -> dict:
    """What every CLIP host needs: a model, and the features of five queries for three classes."""
    return {
        'clip': {'model': TINY_CLIP, 'precision': precision},
        'text_features': torch.randn(5, 16, generator=torch.Generator().manual_seed(5)),
        'query_to_class': [0, 0, 1, 2, 2],
        'data_preprocessor': PREPROCESSOR,
    }


def clip_host(kind: type[Host], **defaults) -> Callable[..., Host]:
    """A builder of a CLIP host. Args: kind: its class; defaults: options that make it small."""

    def build(precision: str = 'auto', **changes) -> Host:
        torch.manual_seed(7)
        return kind(**{**clip_options(precision), **defaults, **changes})

    return build


def around(kind: type[Host], host: type[Host], options: dict | None = None, **defaults) -> Callable[..., Host]:
    """A builder of a plug-in around a CLIP host.

    Args:
        kind: Class of the plug-in.
        host: Class of the host, to which go the options that are passed to the builder.
        options: Options of the plug-in.
        defaults: Options that make the host small.
    """

    def build(precision: str = 'auto', return_scores: bool = False, **changes) -> Host:
        torch.manual_seed(7)
        inner = {'type': host.__name__, **clip_options(precision), **defaults, **changes}
        return kind(inner, return_scores=return_scores, **(options or {}))

    return build


def proxy(patch: int) -> dict:
    """A tiny encoder beside CLIP."""
    model = {'img_size': 4 * patch, 'patch_size': patch, 'embed_dim': 16, 'depth': 1, 'num_heads': 2}
    return {'type': 'TimmEncoder', 'model': model, 'pretrained': False, 'position': 'dino'}


TINY_SAM = {
    'embed_dim': 16,
    'depth': 2,
    'num_heads': 2,
    'global_attn_indexes': (1,),
    'window_size': 3,
    'image_size': 128,
    'prompt_dim': 16,
    'decoder_heads': 2,
    'decoder_mlp': 16,
    'iou_hidden': 16,
}
SLIDE = {'slide_crop': 32, 'slide_stride': 16}
# Some of the masks of a random decoder are kept, others not.
REFINEMENT = {'coarse_thresh': 0.0, 'minimal_area': 4, 'iou_thresh': -0.065}
# The tiny CLIP has no blocks 5 to 8; patches of 8 pixels are near each other.
RESCLIP = {'type': 'ResCLIP', 'rcs': {'blocks': (0, 1)}, 'sfr': {'pamr_steps': 2, 'pamr_dilations': (1, 3)}}
FSA = {'type': 'FSA', 'sharpness': 1.0}  # less of it lets less rounding show
TRIDENT = {**SLIDE, 'proxy': proxy(16), 'sam': {'model': TINY_SAM, 'checkpoint': False}}

#: Name -> function that builds the host; options of the host may be passed.
ZOO: dict[str, Callable[..., Host]] = {
    'CLIP': clip_host(CLIP, **SLIDE),
    'CLIP whole': clip_host(CLIP, slide_crop=0),
    'SCLIP': clip_host(SCLIP, **SLIDE),
    'SCLIP with area_thd': clip_host(SCLIP, area_thd=0.3, prob_thd=0.3, **SLIDE),
    'ClearCLIP': clip_host(ClearCLIP, **{**SLIDE, 'slide_crop': 36}),
    'ClearCLIP, last two layers': clip_host(ClearCLIP, last_n_layers=2, slide_crop=0),
    'NACLIP': clip_host(NACLIP, **SLIDE, pamr_steps=2, pamr_dilations=(1, 3)),
    'NACLIP whole, without PAMR': clip_host(NACLIP, slide_crop=0, pamr_steps=0),
    'NACLIP, neighbors only': clip_host(NACLIP, attention='nonly', pamr_steps=0, **SLIDE),
    'MaskCLIP': clip_host(MaskCLIP),
    'MaskCLIP with refinements': clip_host(MaskCLIP, pd_thresh=0.3, ks_thresh=0.9),
    'GEM': clip_host(GEM, depth=3),
    'GEM without residual': clip_host(GEM, depth=4, iterations=2, temperature=8.0, residual=False, **SLIDE),
    'ProxyCLIP': clip_host(ProxyCLIP, proxy=proxy(4), slide_crop=56, slide_stride=28),
    'ProxyCLIP whole': clip_host(ProxyCLIP, proxy=proxy(14), slide_crop=0, prob_thd=0.4),
    'ProxyCLIP with FSA': clip_host(ProxyCLIP, proxy=proxy(4), slide_crop=56, slide_stride=28, plugin=FSA),
    'SCLIP with FSA': clip_host(SCLIP, **SLIDE, plugin=FSA),
    'ClearCLIP with FSA': clip_host(ClearCLIP, slide_crop=0, plugin=FSA),
    'MaskCLIP with FSA': clip_host(MaskCLIP, plugin=FSA),
    'CLIP with ResCLIP': clip_host(CLIP, **SLIDE, plugin=RESCLIP),
    'SCLIP with ResCLIP': clip_host(SCLIP, slide_crop=0, plugin=RESCLIP),
    'ClearCLIP with ResCLIP': clip_host(ClearCLIP, **{**SLIDE, 'slide_crop': 36}, plugin=RESCLIP),
    'NACLIP with ResCLIP': clip_host(NACLIP, **SLIDE, pamr_steps=2, pamr_dilations=(1, 3), plugin=RESCLIP),
    'MLMP around NACLIP': around(MLMP, NACLIP, {'steps': 2}, **SLIDE, pamr_steps=2, pamr_dilations=(1, 3)),
    'MLMP without steps': around(MLMP, NACLIP, {'steps': 0}, slide_crop=0, pamr_steps=0),
    'MLMP around SCLIP': around(MLMP, SCLIP, {'steps': 1}, **SLIDE),
    'MLMP around GEM': around(MLMP, GEM, {'steps': 1}, depth=3),
    'TENT around NACLIP': around(TENT, NACLIP, {'steps': 2}, **SLIDE, pamr_steps=0),
    'TENT around MaskCLIP with refinements': around(TENT, MaskCLIP, {'steps': 1}, pd_thresh=0.3, ks_thresh=0.9),
    'TENT around ProxyCLIP': around(
        TENT, ProxyCLIP, {'steps': 1}, proxy=proxy(4), slide_crop=56, slide_stride=28, prob_thd=0.4
    ),
    'T3A around NACLIP': around(T3A, NACLIP, {'filter_k': 3}, **SLIDE, pamr_steps=0),
    'T3A around CLIP, all supports': around(T3A, CLIP, {'filter_k': None}, slide_crop=0),
    'LAME around NACLIP': around(LAME, NACLIP, slide_crop=0, pamr_steps=0),
    'LAME around MaskCLIP, windows': around(
        LAME, MaskCLIP, {'affinity': 'knn', 'symmetric': True, 'scope': 'window'}, **SLIDE
    ),
    'Trident': clip_host(Trident, **TRIDENT),
    'Trident, halves and PAMR': clip_host(Trident, **TRIDENT, halves=True, pamr_steps=1, pamr_dilations=(2,)),
    'Trident with refinement': clip_host(Trident, **TRIDENT, refinement=REFINEMENT, prob_thd=0.35),
    'Trident with refinement of halves': clip_host(Trident, **TRIDENT, refinement=REFINEMENT, halves=True),
}


def images(*sizes: tuple[int, int]) -> list[torch.Tensor]:
    """Images as a data preprocessor gives them: smooth, so that a network sees something."""
    generator = torch.Generator().manual_seed(3)
    coarse = [torch.randn(1, 3, 6, 6, generator=generator) for _ in sizes]
    return [torch.nn.functional.interpolate(c, size, mode='bicubic')[0] for c, size in zip(coarse, sizes, strict=True)]
