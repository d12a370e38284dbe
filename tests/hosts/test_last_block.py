"""The CLIP hosts: their defaults, their options, and what they refuse."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from mmengine.config import ConfigDict
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from tests.helpers.zoo import TINY_CLIP, clip_options
from tpa_mmseg.core import QueryScores
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import CLIP, GEM, NACLIP, SCLIP, ClearCLIP, CLIPHost, MaskCLIP
from tpa_mmseg.hosts.attention import STRATEGIES, gaussian_prior
from tpa_mmseg.layers.attention import attend

METHODS = {
    CLIP: {'attention': 'vanilla', 'residual': True, 'logit_scale': 40, 'crop': 224, 'stride': 112, 'pamr': None},
    SCLIP: {'attention': 'csa', 'residual': True, 'logit_scale': 40, 'crop': 224, 'stride': 112, 'pamr': None},
    ClearCLIP: {
        'attention': 'qq',
        'residual': False,
        'logit_scale': 50,
        'crop': 448,
        'stride': 224,
        'pamr': None,
        'pad_to': 8,
    },
    NACLIP: {
        'attention': 'naclip',
        'residual': False,
        'logit_scale': 40,
        'crop': 224,
        'stride': 112,
        'pamr': [10, 8, 16],
        'gaussian_std': 5.0,
        'resize_via_input': True,
    },
    MaskCLIP: {'attention': 'identity', 'residual': True, 'crop': 0, 'position': 'size', 'pd_thresh': 0.0},
    GEM: {'depth': 4, 'iterations': 1, 'temperature': None, 'residual': True, 'crop': 0, 'position': 'timm'},
}


def build(kind: type[CLIPHost], **options) -> CLIPHost:
    if kind is GEM:
        options.setdefault('depth', 4)
    return kind(**{**clip_options(), **options})


@pytest.mark.parametrize('kind', METHODS, ids=lambda kind: kind.__name__)
def test_defaults_are_those_of_the_method(kind: type[CLIPHost]) -> None:
    settings = build(kind).settings()
    settings |= settings['sliding']
    assert {name: settings[name] for name in METHODS[kind]} == METHODS[kind]
    assert build(kind).rule.prob_thd == 0 and build(kind).rule.area_thd is None


@pytest.mark.parametrize('kind', METHODS, ids=lambda kind: kind.__name__)
def test_a_host_is_built_from_a_config_with_class_names(kind: type[CLIPHost]) -> None:
    config = ConfigDict(
        type=kind.__name__,
        clip={'model': TINY_CLIP},
        class_names=['cat', ['dog', 'hound'], 'sky'],
        templates=['a photo of a {}.'],
        pretrained=None,  # as MMSegmentation's init_model does
        train_cfg=None,
    )
    host = MODELS.build({**config, 'depth': 3} if kind is GEM else config)
    assert host.num_classes == 3
    assert host.query_to_class == [0, 1, 1, 2]
    torch.testing.assert_close(host.text_features.norm(dim=1), torch.ones(4))


def test_windows_in_batches_give_the_numbers_of_one_by_one() -> None:
    image = torch.randn(1, 3, 70, 101)
    host = build(SCLIP, slide_crop=32, slide_stride=16)
    with torch.no_grad():
        (alone,) = host.score_maps(image)
        host.window_batch = 5
        (together,) = host.score_maps(image)
    torch.testing.assert_close(together.probabilities(), alone.probabilities(), atol=1e-5, rtol=0)


@pytest.mark.parametrize('resize_via_input', [False, True])
def test_whole_images_are_upsampled_once_or_by_way_of_the_network_input(resize_via_input: bool) -> None:
    image, size = torch.randn(1, 3, 44, 60), (57, 50)
    host = build(CLIP, slide_crop=0, resize_via_input=resize_via_input)
    sample = SegDataSample(metainfo={'ori_shape': size})
    with torch.no_grad():
        scores = host.patch_scores(image) * host.logit_scale
        (found,) = host.score_maps(image, [sample])
    if resize_via_input:
        scores = F.interpolate(scores, image.shape[-2:], mode='bilinear')
    full = F.interpolate(scores, size, mode='bilinear')[0]
    expected = QueryScores(full, size, host.query_to_class)
    torch.testing.assert_close(found.probabilities(), expected.probabilities(), atol=1e-5, rtol=0)


@pytest.mark.parametrize('name', STRATEGIES)
def test_attention_mixes_values_by_their_definition(name: str) -> None:
    q, k, v = torch.randn(3, 2, 3, 13, 8).unbind()
    prior = gaussian_prior((3, 4), 2.0)
    qq, kk, qk = (a @ b.mT / 8**0.5 for a, b in ((q, q), (k, k), (q, k)))
    size = torch.einsum('bhi,bhj->bhij', q.norm(dim=-1), k.norm(dim=-1)).mean((1, 2, 3)) / 8**0.5
    weights = {
        'vanilla': qk.softmax(-1),
        'qq': qq.softmax(-1),
        'kk': kk.softmax(-1),
        'csa': qq.softmax(-1) + kk.softmax(-1),
        'identity': torch.eye(13).expand(2, 3, -1, -1),
        'naclip': (kk + prior).softmax(-1),
        'nonly': (size[:, None, None, None] * prior).softmax(-1),
    }[name]
    mixed = STRATEGIES[name].mix(q, k, v, prior if STRATEGIES[name].gaussian else None)
    torch.testing.assert_close(mixed, weights @ v)


def test_scores_of_attention_may_be_scaled_and_shifted() -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 4).unbind()
    bias = torch.randn(5, 5)
    torch.testing.assert_close(attend(q, k, v, bias, 0.7), (0.7 * q @ k.mT + bias).softmax(-1) @ v)


def test_gaussian_prior_knows_grid_and_deviation() -> None:
    prior = gaussian_prior((2, 3), 1.5)
    assert not prior[0].any() and not prior[:, 0].any()
    # Patches 0 and 5 are one row and two columns apart.
    assert prior[1, 6] == pytest.approx(float(torch.tensor(-(1 + 4) / (2 * 1.5**2)).exp()))
    assert not torch.equal(prior, gaussian_prior((2, 3), 2.0))
    assert not torch.equal(prior, gaussian_prior((3, 2), 1.5))


@pytest.mark.parametrize(
    ('kind', 'options', 'sentence'),
    [
        (SCLIP, {'attention': 'qkv'}, "attention must be one of vanilla, .* not 'qkv'"),
        (SCLIP, {'slide_stride': 300}, 'slide_stride must be between 1 and slide_crop = 224, not 300'),
        (SCLIP, {'slide_crop': 5, 'slide_stride': 5}, '5 x 5 pixels is smaller than one patch of 8'),
        (SCLIP, {'padding': 'center'}, "padding must be a number of pixels, 'patch' or None, not 'center'"),
        (SCLIP, {'resize_via_input': 2}, 'resize_via_input must be one of False, True, not 2'),
        (SCLIP, {'window_batch': 0}, 'window_batch must be at least 1'),
        (SCLIP, {'position': 'clip'}, "position must be one of dino, size, timm, not 'clip'"),
        (ClearCLIP, {'last_n_layers': 4}, 'last_n_layers must be between 1 and 3, not 4'),
        (MaskCLIP, {'last_n_layers': 2, 'ks_thresh': 1.0}, 'set last_n_layers to 1, or ks_thresh to 0'),
        (GEM, {'depth': 5}, 'GEM.depth must be between 2 and 4, not 5'),
        (GEM, {'num_classes': 4}, 'num_classes is 4, but 3 classes are given'),
    ],
)
def test_options_that_cannot_be_are_refused_with_a_sentence(kind: type[CLIPHost], options: dict, sentence: str) -> None:
    with pytest.raises(TPAError, match=sentence):
        build(kind, **options)


def test_template_without_a_place_for_the_name_is_refused() -> None:
    with pytest.raises(TPAError, match=r"templates must contain \{\} .*, got 'a photo'"):
        SCLIP({'model': TINY_CLIP}, class_names=['cat'], templates=['a photo'])
