"""ProxyCLIP gives the numbers of its original implementation, and right ones where the original has none."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.helpers import vfm_golden
from tests.helpers.golden import TOLERANCE, save_weights
from tests.helpers.vfm_golden import PREPROCESSOR, assert_like, cases, shared, vit
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import CLIP, ProxyCLIP
from tpa_mmseg.hosts.proxy_attention import mean_cosine, proxy_attention
from tpa_mmseg.hosts.windows import as_map

ATTENTION, FULL = 'proxyclip_attn.npz', 'proxyclip_full.npz'
CLIP_OF = {'rect_p14': 'h14', 'sq_p14': 'h14', 'whole': 'h14'}
BETA_GAMMA = {'sq_bg': (1.5, 10.0)}


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('weights')


def tiny_host(folder: Path, case: str = '', **options) -> ProxyCLIP:
    clip = vfm_golden.clip(CLIP_OF.get(case, 'b16'), folder)
    return ProxyCLIP(**{'clip': clip, 'text_features': torch.randn(7, 32), 'proxy': vit(16, False), **options})


def attention_host(folder: Path, case: str) -> ProxyCLIP | CLIP:
    """The host of a case in which the features of the proxy are given; the plain block where there is no proxy."""
    text = shared(ATTENTION, 'text')
    if case == 'noproxy':
        return CLIP(vfm_golden.clip('b16', folder), text_features=text)
    beta, gamma = BETA_GAMMA.get(case, (1.2, 3.0))
    return tiny_host(folder, case, text_features=text, beta=beta, gamma=gamma)


@pytest.mark.parametrize('case', vfm_golden.available(ATTENTION, CLIP_OF))
@torch.no_grad()
def test_features_and_logits_are_those_of_the_original(case: str, folder: Path) -> None:
    golden, host = cases(ATTENTION)[case], attention_host(folder, case)
    if case == 'noproxy':
        features = host.features(golden['image'])
    elif len(golden['image']) > 1:
        # The original takes the mean over its batch, which is always one window.
        proxy, grid = golden['proxy'], tuple(golden['proxy'].shape[-2:])
        threshold = (host.beta * mean_cosine(proxy).mean()).expand(len(proxy))
        mixed = proxy_attention(host.values(golden['image'], grid), proxy, threshold, host.gamma)
        features = as_map(host.tower.project(host.tower.blocks[-1].attn.out_proj(mixed)), grid)
    else:
        features = host.mix(golden['image'], golden['proxy'])
    # The original swaps height and width of the values: where that matters, the right numbers are stored as well.
    right = '_fixed' if 'feats_fixed' in golden else ''
    tokens = features.flatten(2).transpose(1, 2)
    torch.testing.assert_close(tokens, golden[f'feats{right}'], **TOLERANCE)
    logits = host.cosines(features).flatten(2).transpose(1, 2)
    torch.testing.assert_close(logits, golden[f'logits{right}'], **TOLERANCE)


@pytest.mark.parametrize('window_batch', [1, 3])
@pytest.mark.parametrize('case', vfm_golden.available(FULL, CLIP_OF))
@torch.no_grad()
def test_prediction_is_that_of_the_original(case: str, window_batch: int, folder: Path) -> None:
    golden = cases(FULL)[case]
    weights = {name.removeprefix('vfm/'): array for name, array in golden.items() if name.startswith('vfm/')}
    crop, stride = golden['crop_stride'].tolist()
    host = tiny_host(
        folder,
        case,
        text_features=golden['text'],
        query_to_class=shared(FULL, 'query_idx').tolist(),
        proxy=vit(int(golden['patch']), save_weights(weights, folder / f'{case}.safetensors')),
        slide_crop=crop,
        slide_stride=stride,
        prob_thd=round(float(golden['prob_thd']), 6),
        window_batch=window_batch,
        data_preprocessor=PREPROCESSOR,
    )
    data = host.data_preprocessor(vfm_golden.as_data(golden['rgb'], golden['ori_shape']))
    (scores,) = host.score_maps(**data)
    if 'first_window_logits' in golden:
        first = host.sliding.cut(data['inputs'][0])[0]
        full = F.interpolate(host.patch_scores(first[None]), first.shape[-2:], mode='bilinear')
        assert_like(full, golden['first_window_logits'], 1e-4)
    assert_like(scores.source.rows(0, scores.size[0]) / host.logit_scale, golden['raw_logits'], 1e-4)
    assert_like(scores.probabilities() * scores.mass, golden['seg_logits'], 1e-3)
    assert torch.equal(scores.labels(), golden['pred'].long())


def by_definition(values: torch.Tensor, proxy: torch.Tensor, beta: float, gamma: float) -> torch.Tensor:
    """Proxy attention of one (D, h, w) window, step by step."""
    unit = F.normalize(proxy.flatten(1), dim=0)
    cosines = unit.T @ unit
    scores = gamma * (cosines - beta * cosines.mean())
    return scores.masked_fill(scores < 0, float('-inf')).softmax(1) @ values.flatten(1).T


@pytest.mark.parametrize('gamma', [0.5, 3.0, 200.0])
def test_attention_equals_its_definition_for_every_window_of_a_batch(gamma: float) -> None:
    values, proxy = torch.randn(3, 8, 5, 7), torch.randn(3, 6, 5, 7) + 0.7
    mixed = proxy_attention(values, proxy, 1.2 * mean_cosine(proxy), gamma)
    for window in range(3):
        expected = by_definition(values[window], proxy[window], 1.2, gamma)
        torch.testing.assert_close(mixed[window], expected, atol=1e-5, rtol=0)


def test_patches_that_are_similar_to_none_keep_their_values() -> None:
    values, proxy = torch.randn(1, 8, 3, 4), torch.ones(1, 6, 3, 4) + 0.01 * torch.randn(1, 6, 3, 4)
    with pytest.warns(UserWarning, match='smaller beta'):
        mixed = proxy_attention(values, proxy, 1.2 * mean_cosine(proxy), 3.0)
    torch.testing.assert_close(mixed, values.flatten(2).transpose(1, 2))


def test_gradients_of_patches_that_are_similar_to_none_are_finite() -> None:
    proxy = torch.ones(1, 6, 3, 4) + 0.01 * torch.randn(1, 6, 3, 4)
    values = torch.randn(1, 8, 3, 4, requires_grad=True)
    with pytest.warns(UserWarning, match='not similar to any patch'):
        proxy_attention(values, proxy, 1.2 * mean_cosine(proxy), 3.0).sum().backward()
    assert torch.isfinite(values.grad).all()


def test_ordinary_features_raise_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        proxy_attention(torch.randn(1, 8, 3, 4), torch.randn(1, 6, 3, 4), torch.zeros(1), 3.0)


def test_nan_of_the_proxy_is_not_hidden() -> None:
    proxy = torch.randn(1, 6, 3, 4)
    proxy[0, :, 1, 2] = float('nan')
    mixed = proxy_attention(torch.randn(1, 8, 3, 4), proxy, torch.zeros(1), 3.0)
    assert mixed.isnan().all()


def test_the_proxy_sees_the_image_in_its_own_normalization(folder: Path) -> None:
    host = tiny_host(folder, padding=None, slide_crop=32, slide_stride=32)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in host.statistics)
    pixels = torch.rand(1, 3, 32, 48)
    expected = host.proxy.dense((pixels - host.proxy.mean) / host.proxy.std)
    torch.testing.assert_close(host.proxy_features((pixels - mean) / std), expected, atol=1e-5, rtol=0)


def test_pixels_beyond_the_last_whole_patch_are_dropped(folder: Path) -> None:
    host, windows = tiny_host(folder), torch.randn(1, 3, 56, 112)
    features = host.proxy_features(windows)
    assert features.shape[-2:] == (3, 7)
    assert torch.equal(features, host.proxy_features(windows[:, :, :48]))


def test_sam_sees_every_window_stretched_to_its_input(folder: Path) -> None:
    sam = {'type': 'VisionTransformerSAM', 'img_size': 64, 'embed_dim': 16, 'depth': 1, 'num_heads': 2, 'neck_chans': 8}
    sam = {**sam, 'window_size': 2, 'global_attn_indexes': (0,)}
    host = tiny_host(folder, proxy={'type': 'TimmEncoder', 'model': sam, 'pretrained': False})
    windows = torch.randn(1, 3, 56, 112)
    normalized = (host.pixels(windows) - host.proxy.mean) / host.proxy.std
    expected = host.proxy.dense(F.interpolate(normalized, (64, 64), mode='bilinear'))
    torch.testing.assert_close(host.proxy_features(windows), expected)
    assert host.patch_scores(windows).shape == (1, 7, 4, 4)


def test_mae_sees_every_window_at_the_size_of_a_crop(folder: Path) -> None:
    host = tiny_host(folder, proxy=vit(16, False, position='size'), slide_crop=112)
    assert host.proxy_features(torch.randn(1, 3, 56, 112)).shape[-2:] == (7, 7)
    assert tiny_host(folder, proxy=vit(16, False, position='size'), slide_crop=112, proxy_size=None).proxy_size is None
    assert tiny_host(folder, proxy=vit(16, False, position='size'), slide_crop=0).proxy_size is None
    assert tiny_host(folder, proxy=vit(16, False)).proxy_size is None


@pytest.mark.parametrize(
    ('options', 'sentence'),
    [
        ({'gamma': 0}, 'gamma must be positive'),
        (
            {'slide_crop': 16, 'slide_stride': 16, 'padding': None, 'proxy': vit(32, False)},
            'smaller than one patch of the proxy',
        ),
        ({'proxy_size': 8}, 'proxy_size must be'),
        ({'proxy': {'type': 'SegDataPreProcessor'}}, 'proxy must be an encoder'),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict, sentence: str, folder: Path) -> None:
    with pytest.raises(TPAError, match=sentence):
        tiny_host(folder, **options)


def test_windows_smaller_than_a_patch_of_the_proxy_are_refused(folder: Path) -> None:
    with pytest.raises(TPAError, match='smaller than one patch of the proxy'):
        tiny_host(folder, proxy=vit(32, False)).proxy_features(torch.randn(1, 3, 16, 64))


def test_fingerprint_knows_the_proxy(folder: Path) -> None:
    torch.manual_seed(0)
    first = tiny_host(folder).fingerprint()
    assert first['proxy']['position'] == 'dino'
    torch.manual_seed(0)
    assert tiny_host(folder).fingerprint() == first
    torch.manual_seed(0)
    assert tiny_host(folder, beta=1.3).fingerprint() != first
    assert tiny_host(folder).fingerprint()['weights'] != first['weights']
