"""GEM and MaskCLIP give the numbers of their original implementations."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.helpers.golden import TOLERANCE, golden_files, load, plugin_clip
from tpa_mmseg.core import QueryScores, Resized
from tpa_mmseg.hosts import CLIP, GEM, MaskCLIP
from tpa_mmseg.hosts.maskclip import Logarithm, denoise, smooth

GEM_FILES = golden_files('plugins', 'gem_*.npz')
MASKCLIP_FILES = golden_files('plugins', 'maskclip_*.npz')
# The original runs CLIP's weights with an exact GELU and another epsilon; the second form is what they want.
MASKCLIP_FORMS = {'upstream_gelu_eps1e6': (True, 1e-6), 'quickgelu_eps1e5': (False, 1e-5)}


@pytest.mark.parametrize('path', GEM_FILES, ids=lambda path: path.stem)
def test_gem_is_that_of_the_original(path: Path, plugin_weights: str) -> None:
    golden = load(path)
    temperature = float(golden['ss_attn_temp'])
    clip = {'model': plugin_clip(), 'pretrained': plugin_weights}
    model = GEM(
        clip,
        text_features=golden['text'],
        depth=int(golden['depth']),
        iterations=int(golden['ss_attn_iter']),
        temperature=None if temperature < 0 else temperature,
    )
    plain = CLIP(clip, text_features=golden['text'], position='timm')
    with torch.no_grad():
        torch.testing.assert_close(model.tokens(golden['image']), golden['feat_gem'], **TOLERANCE)
        torch.testing.assert_close(plain.tokens(golden['image']), golden['feat_ori'], **TOLERANCE)
        scores = model.patch_scores(golden['image'])
    torch.testing.assert_close(scores, golden['logits_patch'], **TOLERANCE)
    if 'heat_full' in golden:
        full = Resized(scores[0], golden['image'].shape[-2:]).rows(0, golden['image'].shape[-2])
        low, high = full.amin((1, 2), keepdim=True), full.amax((1, 2), keepdim=True)
        torch.testing.assert_close(((full - low) / (high - low))[None], golden['heat_full'], **TOLERANCE)


@pytest.mark.parametrize('form', MASKCLIP_FORMS)
@pytest.mark.parametrize('path', MASKCLIP_FILES, ids=lambda path: path.stem)
def test_maskclip_and_its_refinements_are_those_of_the_original(path: Path, form: str, plugin_weights: str) -> None:
    golden = load(path)
    gelu, eps = MASKCLIP_FORMS[form]
    expected = {name.removeprefix(f'{form}_'): v for name, v in golden.items() if name.startswith(form)}
    clip = {'model': plugin_clip(gelu, eps), 'pretrained': plugin_weights}
    model = MaskCLIP(clip, text_features=golden['text'], ks_thresh=1.0)
    with torch.no_grad():
        features = model.features(golden['image'])
        scores, keys = model.patch_scores(golden['image'])[0].split([len(golden['text']), 64])
    torch.testing.assert_close(features, expected['v_feat'], **TOLERANCE)
    torch.testing.assert_close(scores[None], expected['logits'], **TOLERANCE)
    if 'key' in expected:
        torch.testing.assert_close(keys.flatten(1).T[None], expected['key'], **TOLERANCE)
    (denoised,) = denoise([scores], 0.5)
    torch.testing.assert_close(denoised[None], expected['pd05_logits'], **TOLERANCE)
    torch.testing.assert_close(smooth(scores, keys, 1.0)[None], expected['ks1_prob'], **TOLERANCE)
    torch.testing.assert_close(smooth(denoised, keys, 1.0)[None], expected['ks1_pd05_prob'], **TOLERANCE)


def test_maskclip_decodes_refined_scores_at_full_size(plugin_weights: str) -> None:
    golden = load(MASKCLIP_FILES[0])
    image = golden['image']
    clip = {'model': plugin_clip(), 'pretrained': plugin_weights}
    model = MaskCLIP(clip, text_features=golden['text'], ks_thresh=1.0, pd_thresh=0.5)
    with torch.no_grad():
        (scores,) = model.score_maps(image)
    prob = golden['quickgelu_eps1e5_ks1_pd05_prob']
    full = F.interpolate(prob, image.shape[-2:], mode='bilinear')[0].clamp(min=0)
    torch.testing.assert_close(scores.probabilities(), full / full.sum(0), **TOLERANCE)


def test_a_pixel_without_a_positive_score_keeps_its_best_class() -> None:
    scores = torch.tensor([-0.3, -0.1, -0.2])[:, None, None].expand(3, 4, 4)
    maps = QueryScores(Logarithm(Resized(scores, (8, 8))), (8, 8), [0, 1, 2])
    assert (maps.labels() == 1).all()


def test_key_smoothing_leaves_confident_patches_alone() -> None:
    scores, keys = torch.randn(5, 3, 4) / 100, torch.randn(8, 3, 4)
    confident = (100 * scores).softmax(0).amax(0) >= 0.6
    assert confident.any() and not confident.all()
    smoothed = smooth(scores, keys, 0.6)
    assert torch.equal(smoothed[:, confident], (100 * scores).softmax(0)[:, confident])
    assert not torch.isclose(smoothed[:, ~confident], (100 * scores).softmax(0)[:, ~confident]).all()
