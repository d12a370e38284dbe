"""SCLIP, ClearCLIP and NACLIP give the numbers of their original implementations."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmseg.structures import SegDataSample

from tests.helpers.golden import TOLERANCE, golden_file, golden_files, load, tiny_clip
from tpa_mmseg.clip.tower import heads
from tpa_mmseg.core import Resized
from tpa_mmseg.hosts import GEM, NACLIP, SCLIP, ClearCLIP
from tpa_mmseg.hosts.attention import STRATEGIES, gaussian_prior

FOLDER = 'clip_hosts'
CLEARCLIP_ATTENTION = {'ClearCLIP': 'qq', 'vanilla': 'vanilla', 'MaskCLIP': 'identity', 'SCLIP': 'csa'}
PREPROCESSOR = {
    'type': 'SegDataPreProcessor',
    'mean': [122.771, 116.746, 104.094],
    'std': [68.501, 66.632, 70.323],
    'bgr_to_rgb': True,
}
# What the full cases change against the defaults of their host.
FULL_OPTIONS = {
    'sclip': {
        'slide_bg': {},
        'slide_default_noth': {'prob_thd': 0.0},
        'slide_area': {'logit_scale': 65, 'area_thd': 0.2},
        'slide_flat': {'logit_scale': 50},
        'slide_flat_area': {'logit_scale': 65, 'area_thd': 0.1},
        'slide_pamr10': {'pamr_steps': 10},
        'whole': {'slide_crop': 0},
        'bigcrop': {'slide_crop': 112, 'slide_stride': 56},
        'p14_slide': {'slide_crop': 56, 'slide_stride': 28},
    },
    'naclip': {
        'slide_bg_pamr10': {},
        'slide_bg_nopamr': {'pamr_steps': 0},
        'slide_flat_nopamr': {'pamr_steps': 0, 'prob_thd': 0.35},
        'slide_vispamr': {'pamr_steps': 5, 'pamr_dilations': (1, 2, 4, 8, 12, 24)},
        'whole_pamr10': {'slide_crop': 0},
        'whole_nopamr': {'slide_crop': 0, 'pamr_steps': 0},
        'bigcrop_nopamr': {'slide_crop': 112, 'slide_stride': 56, 'pamr_steps': 0},
        'p14_slide_nopamr': {'slide_crop': 56, 'slide_stride': 28, 'pamr_steps': 0},
    },
    'clearclip': {
        'slide_bg': {},
        'slide_default_noth': {'prob_thd': 0.0},
        'slide_flat': {},
        'slide_vanillabase': {'attention': 'vanilla'},
        'slide_nonoverlap': {'slide_stride': 64},
        'whole': {'slide_crop': 0},
        'bigcrop_pad': {'slide_crop': 112, 'slide_stride': 56},
        'p14_slide_pad': {},
    },
}
HOSTS = {'sclip': SCLIP, 'naclip': NACLIP, 'clearclip': ClearCLIP}
DENSE = golden_files(FOLDER, '*_dense_*.npz')
FULL = [path for path in golden_files(FOLDER, '*_full_*.npz') if 'fp16' not in path.name]


def name_of(path: Path) -> str:
    return path.stem


def dense_host(host: str, option: str, **kwargs) -> SCLIP | ClearCLIP | NACLIP | GEM:
    """The host that a dense golden file names."""
    if host == 'sclip':
        return SCLIP(attention=option, **kwargs)
    if host == 'naclip':
        arch, attention, std = re.fullmatch(r'(\w+?)_(\w+)_std(\d+)', option).groups()
        return NACLIP(attention=attention, residual=arch == 'vanilla', gaussian_std=float(std), **kwargs)
    kind, *rest = option.split('_')
    residual = 'res' in rest
    if kind == 'GEM':
        return GEM(depth=int(rest[0].removeprefix('depth')), residual=residual, **kwargs)
    layers = next((int(part.removeprefix('last')) for part in rest if part.startswith('last')), 1)
    return ClearCLIP(attention=CLEARCLIP_ATTENTION[kind], residual=residual, last_n_layers=layers, **kwargs)


@pytest.mark.parametrize('path', DENSE, ids=name_of)
def test_dense_features_and_logits_are_those_of_the_original(path: Path, clip_weights: Callable[[int], str]) -> None:
    host, option, patch, size = re.fullmatch(r'(\w+?)_dense_(\w+)_p(\d+)_(\d+x\d+)', path.stem).groups()
    golden, patch = load(path), int(patch)
    queries = load(golden_file(FOLDER, 'queries.npz'))[f'queries_p{patch}']
    images = load(golden_file(FOLDER, 'images.npz'))[f'img_{size}']
    clip = {'model': tiny_clip(patch, gelu='gelu' in option), 'pretrained': clip_weights(patch)}
    model = dense_host(host, option, clip=clip, text_features=queries)
    with torch.no_grad():
        tokens, features = model.tokens(images), model.features(images)
        scores = model.patch_scores(images)
    torch.testing.assert_close(features.flatten(2).transpose(1, 2), golden['patch_features'], **TOLERANCE)
    if 'pooled' in golden:
        torch.testing.assert_close(tokens[:, 0], golden['pooled'].reshape(1, -1), **TOLERANCE)
    if 'dense_logits' in golden:
        torch.testing.assert_close(scores, golden['dense_logits'], **TOLERANCE)
        full = Resized(scores[0], images.shape[-2:]).rows(0, images.shape[-2])
        torch.testing.assert_close(full[None, :, ::4, ::4], golden['upsampled_logits'], **TOLERANCE)


@pytest.mark.parametrize('path', [p for p in DENSE if 'last_attn' in load(p)], ids=name_of)
def test_attention_of_the_last_block_is_that_of_the_original(path: Path, clip_weights: Callable[[int], str]) -> None:
    host, option, patch, size = re.fullmatch(r'(\w+?)_dense_(\w+)_p(\d+)_(\d+x\d+)', path.stem).groups()
    images = load(golden_file(FOLDER, 'images.npz'))[f'img_{size}']
    clip = {'model': tiny_clip(int(patch)), 'pretrained': clip_weights(int(patch))}
    model = dense_host(host, option, clip=clip, text_features=torch.randn(3, 32))
    strategy, block = STRATEGIES[model.attention], model.tower.blocks[-1]
    q, k, _ = heads(block, model.tower.trunk(images))
    prior = gaussian_prior(model.tower.grid(images.shape[-2:]), model.gaussian_std) if strategy.gaussian else None
    # Values that are the rows of the identity matrix show the weights that mix them.
    weights = strategy.mix(q, k, torch.eye(q.shape[2]).expand(*q.shape[:3], -1), prior)
    torch.testing.assert_close(weights[0].detach(), load(path)['last_attn'], **TOLERANCE)


@pytest.mark.parametrize('path', [p for p in DENSE if 'gaussian_addition' in load(p)], ids=name_of)
def test_gaussian_prior_is_that_of_the_original(path: Path) -> None:
    std, patch, height, width = map(int, re.search(r'std(\d+)_p(\d+)_(\d+)x(\d+)', path.stem).groups())
    prior = gaussian_prior((height // patch, width // patch), float(std))
    torch.testing.assert_close(prior, load(path)['gaussian_addition'], **TOLERANCE)


def full_host(path: Path, weights: Callable[[int], str], precision: str = 'auto', **changes):
    """The host of a golden file of whole predictions."""
    host, case = re.fullmatch(r'(\w+?)_full_(\w+)', path.stem).groups()
    golden, patch = load(path), 14 if case.startswith('p14') else 16
    return HOSTS[host](
        clip={'model': tiny_clip(patch), 'pretrained': weights(patch), 'precision': precision},
        text_features=golden['query_features'],
        query_to_class=golden['query_idx'].tolist(),
        data_preprocessor=PREPROCESSOR,
        **{'slide_crop': 64, 'slide_stride': 32, 'prob_thd': 0.4, **FULL_OPTIONS[host][case], **changes},
    )


def full_input(model: SCLIP | ClearCLIP | NACLIP, golden: dict[str, torch.Tensor]) -> dict:
    sample = SegDataSample(metainfo={'ori_shape': tuple(golden['ori_shape'].tolist())})
    return model.data_preprocessor({'inputs': [golden['resized_bgr']], 'data_samples': [sample]})


@pytest.mark.parametrize('window_batch', [1, 4])
@pytest.mark.parametrize('path', FULL, ids=name_of)
def test_prediction_is_that_of_the_original(path: Path, window_batch: int, clip_weights: Callable[[int], str]) -> None:
    golden, model = load(path), full_host(path, clip_weights, window_batch=window_batch)
    data = full_input(model, golden)
    with torch.no_grad():
        (scores,) = model.score_maps(**data)
        (result,) = model.predict(**data)
    if 'net_input' in golden:
        torch.testing.assert_close(data['inputs'], golden['net_input'], atol=1e-5, rtol=0)
    if 'final_logits' in golden:
        cosines = scores.source.rows(0, scores.size[0]) / model.logit_scale
        torch.testing.assert_close(cosines[None], golden['final_logits'], **TOLERANCE)
    if 'seg_logits' in golden:
        # NACLIP stores its scores divided by their sum; the other two as they are, struck classes as zeros.
        stored = scores.probabilities() if isinstance(model, NACLIP) else scores.probabilities() * scores.mass
        kept = golden['seg_logits'].flatten(1).any(1)
        assert kept.all() or model.rule.area_thd is not None
        torch.testing.assert_close(stored[kept], golden['seg_logits'][kept], **TOLERANCE)
    assert torch.equal(result.pred_sem_seg.data, golden['seg_pred'])


@pytest.mark.parametrize(('precision', 'most'), [('float16', 0.001), ('bfloat16', 0.01)])
@pytest.mark.parametrize('path', FULL, ids=name_of)
def test_half_precision_changes_few_labels_of_the_original(
    path: Path, precision: str, most: float, clip_weights: Callable[[int], str]
) -> None:
    golden, model = load(path), full_host(path, clip_weights, precision)
    # Some virtual machines announce matrix instructions for bfloat16 that they cannot execute; oneDNN would use them.
    with torch.backends.mkldnn.flags(enabled=False):
        (result,) = model.predict(**full_input(model, golden))
    changed = (result.pred_sem_seg.data != golden['seg_pred']).float().mean().item()
    assert changed < most
