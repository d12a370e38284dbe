"""What every encoder promises, shown with tiny vision transformers."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F
from mmseg.models.data_preprocessor import SegDataPreProcessor
from mmseg.registry import MODELS
from torch import nn

from tpa_mmseg.encoders import Encoder, PixelNormalization, TimmEncoder
from tpa_mmseg.errors import TPAError
from tpa_mmseg.layers.resize import nearest_multiple

VIT = {'embed_dim': 16, 'depth': 2, 'num_heads': 2, 'img_size': 56, 'patch_size': 14}
EVA = {
    'type': 'Eva',
    **VIT,
    'num_reg_tokens': 4,
    'use_abs_pos_emb': False,
    'use_rot_pos_emb': True,
    'rope_type': 'dinov3',
}
SAM = {'type': 'VisionTransformerSAM', **VIT, 'window_size': 2, 'neck_chans': 8, 'use_rel_pos': True}
MODELS_UNDER_TEST = {'vit': VIT, 'eva': EVA, 'sam': SAM}
PLAIN = PixelNormalization()


@pytest.fixture(params=MODELS_UNDER_TEST)
def encoder(request) -> Encoder:
    return TimmEncoder(MODELS_UNDER_TEST[request.param], pretrained=False)


def preprocess(picture: torch.Tensor, **settings) -> tuple[torch.Tensor, PixelNormalization]:
    """A (3, H, W) BGR picture as a host's data preprocessor hands it on."""
    preprocessor = SegDataPreProcessor(**settings)
    return preprocessor({'inputs': [picture]})['inputs'][0], PixelNormalization.of(preprocessor)


@pytest.mark.parametrize('size', [(1, 1), (1, 300), (5, 9), (13, 400), (56, 56), (60, 91)])
def test_any_image_size_gives_finite_features_on_the_grid_it_was_resized_to(encoder, size):
    height, width = encoder.input_size(*size)
    features = encoder(torch.rand(3, *size) * 255, PLAIN)
    assert features.shape == (encoder.dim, height // encoder.patch, width // encoder.patch)
    assert features.isfinite().all() and features.dtype == torch.float32


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision_images_are_accepted(encoder, dtype):
    image = (torch.rand(3, 30, 44) * 255).to(dtype)
    assert torch.equal(encoder(image, PLAIN), encoder(image.float(), PLAIN))


@pytest.mark.filterwarnings('ignore:TF32 acceleration')  # said when oneDNN is switched off and on
@pytest.mark.parametrize('precision', ['float16', 'bfloat16'])
@pytest.mark.parametrize('model', MODELS_UNDER_TEST)
def test_lower_precision_gives_nearly_the_same_float32_features(model, precision):
    exact = TimmEncoder(MODELS_UNDER_TEST[model], pretrained=False)
    lower = TimmEncoder(MODELS_UNDER_TEST[model], pretrained=False, precision=precision)
    lower.load_state_dict(exact.state_dict())
    image = torch.rand(3, 56, 70) * 255
    # Some virtual machines announce matrix instructions for bfloat16 that they cannot execute; oneDNN would use them.
    with torch.backends.mkldnn.flags(enabled=False):
        features = lower(image, PLAIN)
    assert features.dtype == torch.float32
    assert 0 < (features - exact(image, PLAIN)).abs().max() < 0.1


def test_an_autocast_around_the_caller_does_not_change_float32_features(encoder):
    image = torch.rand(3, 56, 56)
    expected = encoder(image, PLAIN)
    with torch.autocast('cpu', torch.float16):
        assert torch.equal(encoder(image, PLAIN), expected)


def test_an_encoder_stays_frozen_inside_a_model_that_trains(encoder):
    model = nn.ModuleList([encoder]).train()
    assert model.training and not any(module.training for module in encoder.modules())
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert not encoder(torch.rand(3, 28, 28, requires_grad=True), PLAIN).requires_grad


def test_features_do_not_depend_on_how_the_host_normalized_the_image(encoder):
    picture = torch.randint(0, 256, (3, 45, 61), dtype=torch.uint8)
    statistics = {'mean': [123.7, 116.3, 103.5], 'std': [58.4, 57.1, 57.4]}
    rgb = encoder(*preprocess(picture, **statistics, bgr_to_rgb=True))
    bgr = encoder(*preprocess(picture, mean=[100, 110, 120], std=[1, 2, 3], bgr_to_rgb=False))
    raw = encoder(*preprocess(picture))
    torch.testing.assert_close(rgb, bgr, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(rgb, raw, atol=1e-4, rtol=1e-4)


def test_the_network_sees_rgb_with_its_own_statistics():
    encoder = TimmEncoder(VIT, pretrained=False, mean=[0.1, 0.2, 0.3], std=[0.4, 0.5, 0.6])
    picture = torch.randint(0, 256, (3, 28, 42), dtype=torch.uint8)
    rgb = picture.flip(0) / 255
    images = (rgb - torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1)) / torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)
    torch.testing.assert_close(encoder(*preprocess(picture)), encoder.dense(images[None])[0], atol=1e-5, rtol=1e-5)


def test_normalization_reads_the_fork_s_data_preprocessor_too():
    class Fork(nn.Module):
        _channel_conversion = True

    assert PixelNormalization.of(Fork()) == PixelNormalization(rgb=True)
    assert PixelNormalization.of(nn.Module()) == PixelNormalization(rgb=False)


@pytest.mark.parametrize(
    ('side', 'multiple'), [(1, 14), (14, 14), (20, 14), (21, 28), (34, 28), (35, 42), (336, 336), (340, 336)]
)
def test_sides_go_to_the_nearest_multiple_of_the_patch(side, multiple):
    assert nearest_multiple(side, 14) == multiple


def test_the_image_is_resized_once_without_antialiasing():
    encoder = TimmEncoder(VIT, pretrained=False)
    image = torch.rand(3, 50, 117) * 255
    images = (image[None] / 255 - encoder.mean) / encoder.std
    expected = encoder.dense(F.interpolate(images, size=(56, 112), mode='bilinear', align_corners=False))[0]
    torch.testing.assert_close(encoder(image, PLAIN), expected, atol=1e-5, rtol=1e-5)


def test_short_side_keeps_the_aspect_ratio():
    encoder = TimmEncoder(VIT, pretrained=False, short_side=56)
    assert encoder.input_size(100, 200) == (56, 112)
    assert encoder.input_size(30, 20) == (84, 56)
    assert encoder(torch.rand(3, 100, 200), PLAIN).shape == (16, 4, 8)


@pytest.mark.parametrize('size', [(560, 1120), (1120, 560), (1008, 14), (300, 301)])
@pytest.mark.parametrize('most', [1, 7, 768])
def test_max_tokens_bounds_the_patches_of_an_image_and_nothing_else(size, most):
    bounded, free = (TimmEncoder(VIT, pretrained=False, max_tokens=tokens) for tokens in (most, None))
    height, width = bounded.input_size(*size)
    patches = (height // bounded.patch) * (width // bounded.patch)
    assert 1 <= patches <= most and height % bounded.patch == width % bounded.patch == 0
    rows, columns = (side // free.patch for side in free.input_size(*size))
    if rows * columns <= most:
        assert (height, width) == free.input_size(*size)
    elif most == 768:
        assert patches > 0.85 * most


def test_sam_stretches_every_image_to_its_one_size():
    encoder = TimmEncoder(SAM, pretrained=False)
    images = torch.randn(2, 3, 33, 90)
    stretched = F.interpolate(images, size=(56, 56), mode='bilinear', align_corners=False)
    assert torch.equal(encoder.dense(images), encoder.dense(stretched))
    assert encoder.dense(images).shape == (2, 8, 4, 4)


def test_a_batch_gives_each_image_the_features_it_gets_alone(encoder):
    images = torch.randn(3, 3, 42, 56)
    alone = torch.cat([encoder.dense(image[None]) for image in images])
    torch.testing.assert_close(encoder.dense(images), alone, atol=1e-5, rtol=1e-5)


def test_dense_refuses_sides_that_are_no_multiple_of_the_patch():
    with pytest.raises(ValueError, match='multiple of the patch, 14'):
        TimmEncoder(VIT, pretrained=False).dense(torch.rand(1, 3, 56, 60))


def test_equal_encoders_have_equal_fingerprints_that_survive_json(tmp_path):
    encoder = TimmEncoder(VIT, pretrained=False)
    torch.save(encoder.network.state_dict(), tmp_path / 'vit.pth')
    again = TimmEncoder(dict(VIT), pretrained=tmp_path / 'vit.pth')
    assert again.fingerprint() == json.loads(json.dumps(encoder.fingerprint()))


@pytest.mark.parametrize(
    'change',
    [{'short_side': 98}, {'max_tokens': 9}, {'position': 'dino'}, {'precision': 'bfloat16'}, {'mean': [0.5, 0.5, 0.5]}],
)
def test_every_setting_that_changes_numbers_changes_the_fingerprint(change):
    encoder = TimmEncoder(VIT, pretrained=False)
    changed = TimmEncoder(VIT, pretrained=False, **change)
    changed.load_state_dict(encoder.state_dict())
    assert changed.fingerprint()['weights'] == encoder.fingerprint()['weights']
    assert changed.fingerprint() != encoder.fingerprint()


def test_other_weights_change_the_fingerprint(encoder):
    before = encoder.fingerprint()
    with torch.no_grad():
        encoder.network.blocks[0].mlp.fc1.weight += 1e-3
    assert encoder.fingerprint() != before


def test_an_encoder_is_built_from_a_config():
    encoder = MODELS.build({'type': 'TimmEncoder', 'model': SAM, 'pretrained': False})
    assert isinstance(encoder, TimmEncoder) and encoder.fixed_size == (56, 56)


@pytest.mark.parametrize(
    ('settings', 'sentence'),
    [
        ({'precision': 'half'}, 'auto, float32, float16, bfloat16'),
        ({'position': 'bicubic'}, 'auto, dino, size, timm'),
        ({'short_side': 0}, 'short_side'),
        ({'max_tokens': 0}, 'max_tokens'),
        ({'model': SAM, 'short_side': 448}, 'remove encoder.short_side'),
        ({'model': EVA, 'position': 'dino'}, 'no position table'),
    ],
)
def test_a_wrong_setting_is_answered_with_a_sentence(settings, sentence):
    with pytest.raises(TPAError, match=sentence):
        TimmEncoder(**{'model': VIT, 'pretrained': False, **settings})
