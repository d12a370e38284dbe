"""Named timm models: their weights from files of every release, the weights folder and the hub's cache."""

from __future__ import annotations

import pytest
import safetensors.torch
import timm
import torch

from tpa_mmseg.encoders import TimmEncoder
from tpa_mmseg.errors import TPAError

NAME = 'test_vit.r160_in1k'  # timm's own miniature
TINY = {'embed_dim': 16, 'depth': 2, 'num_heads': 2, 'img_size': 56, 'patch_size': 14}
EVA = {'type': 'Eva', **TINY, 'num_reg_tokens': 4, 'use_abs_pos_emb': False, 'use_rot_pos_emb': True}
REG = {**TINY, 'init_values': 1.0, 'reg_tokens': 4, 'no_embed_class': True}
SAM = {'type': 'VisionTransformerSAM', **TINY, 'window_size': 2, 'neck_chans': 8, 'use_rel_pos': True}


def shaken(encoder: TimmEncoder) -> TimmEncoder:
    """The encoder with every weight random: a fresh network has zeros and ones where a file could go astray."""
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.normal_(std=0.3)
    return encoder


def assert_same_features(one: TimmEncoder, other: TimmEncoder) -> None:
    images = torch.randn(1, 3, 2 * one.patch, 3 * one.patch)
    torch.testing.assert_close(one.dense(images), other.dense(images), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ('name', 'dim', 'patch', 'position'),
    [
        ('vit_small_patch14_dinov2', 384, 14, 'dino'),
        ('vit_small_patch14_reg4_dinov2.lvd142m', 384, 14, 'timm'),
        ('vit_small_patch8_224.dino', 384, 8, 'dino'),
        ('vit_tiny_patch16_224', 192, 16, 'timm'),
        ('vit_tiny_patch16_dinov3_qkvb.eupe_lvd1689m', 192, 16, 'timm'),
    ],
)
def test_a_standard_model_loads_a_file_saved_by_timm(tmp_path, name, dim, patch, position):
    network = timm.create_model(name, dynamic_img_size=True).eval()
    safetensors.torch.save_file(network.state_dict(), tmp_path / 'model.safetensors')
    encoder = TimmEncoder(name, pretrained=tmp_path / 'model.safetensors')
    assert (encoder.dim, encoder.patch, encoder.position) == (dim, patch, position)
    height, width = network.patch_embed.grid_size
    images = torch.randn(1, 3, height * patch, width * patch)
    with torch.no_grad():
        tokens = network.forward_features(images)[:, network.num_prefix_tokens :]
    expected = tokens.transpose(1, 2).reshape(1, dim, height, width)
    torch.testing.assert_close(encoder.dense(images), expected, atol=1e-4, rtol=1e-4)


def test_statistics_come_from_the_weights_of_the_tag():
    assert TimmEncoder('vit_tiny_patch16_224', pretrained=False).fingerprint()['mean'] == [0.5, 0.5, 0.5]
    assert TimmEncoder('vit_small_patch16_224.dino', pretrained=False).fingerprint()['mean'] == [0.485, 0.456, 0.406]


def test_a_name_and_its_default_tag_are_the_same_encoder(weights_folder):
    encoder = shaken(TimmEncoder(NAME, pretrained=False))
    safetensors.torch.save_file(encoder.network.state_dict(), weights_folder / f'{NAME}.safetensors')
    assert TimmEncoder('test_vit').fingerprint() == TimmEncoder('test_vit', pretrained='r160_in1k').fingerprint()
    assert TimmEncoder('test_vit').fingerprint() == encoder.fingerprint()


def test_original_dino_file(tmp_path):
    encoder = shaken(TimmEncoder(TINY, pretrained=False, position='dino'))
    torch.save(encoder.network.state_dict(), tmp_path / 'dino.pth')
    assert_same_features(encoder, TimmEncoder(TINY, pretrained=tmp_path / 'dino.pth', position='dino'))


def test_original_mae_file_with_its_decoder(tmp_path):
    encoder = shaken(TimmEncoder(TINY, pretrained=False, position='size'))
    rest = {'mask_token': torch.zeros(1, 1, 8), 'decoder_embed.weight': torch.zeros(8, 16)}
    torch.save({'model': {**encoder.network.state_dict(), **rest}}, tmp_path / 'mae.pth')
    assert_same_features(encoder, TimmEncoder(TINY, pretrained=tmp_path / 'mae.pth', position='size'))


def test_original_dinov2_file_with_registers(tmp_path):
    encoder = shaken(TimmEncoder(REG, pretrained=False))
    state = encoder.network.state_dict()
    # The original keeps a position entry for the class token; timm adds it to the token once and for all.
    entry = torch.randn(1, 1, 16)
    state['register_tokens'] = state.pop('reg_token')
    state['cls_token'] = state['cls_token'] - entry
    state['pos_embed'] = torch.cat([entry, state['pos_embed']], dim=1)
    state['mask_token'] = torch.zeros(1, 16)
    torch.save(state, tmp_path / 'dinov2.pth')
    assert_same_features(encoder, TimmEncoder(REG, pretrained=tmp_path / 'dinov2.pth'))


@pytest.mark.parametrize('whole', [True, False])
def test_original_sam_file_whole_or_its_image_encoder_alone(tmp_path, whole):
    encoder = shaken(TimmEncoder(SAM, pretrained=False))
    state = {name.replace('mlp.fc', 'mlp.lin'): tensor for name, tensor in encoder.network.state_dict().items()}
    if whole:
        state = {f'image_encoder.{name}': tensor for name, tensor in state.items()}
        state['mask_decoder.iou_token.weight'] = torch.zeros(1, 8)
    torch.save(state, tmp_path / 'sam.pth')
    assert_same_features(encoder, TimmEncoder(SAM, pretrained=tmp_path / 'sam.pth'))


@pytest.mark.parametrize('file', ['vit_small_patch8_224.dino.pth', 'dino_deitsmall8_pretrain.pth'])
def test_the_weights_folder_is_asked_before_the_hub(weights_folder, no_hub, file):
    network = timm.create_model('vit_small_patch8_224', num_classes=0)
    torch.save(network.state_dict(), weights_folder / file)
    encoder = TimmEncoder('vit_small_patch8_224.dino')
    assert torch.equal(encoder.network.cls_token, network.cls_token)


def test_weights_in_the_hub_s_cache_need_no_connection(no_hub):
    network = timm.create_model(NAME)
    repository = no_hub / f'models--timm--{NAME}'
    commit = '0' * 40
    (repository / 'refs').mkdir(parents=True)
    (repository / 'refs' / 'main').write_text(commit)
    (repository / 'snapshots' / commit).mkdir(parents=True)
    safetensors.torch.save_file(network.state_dict(), repository / 'snapshots' / commit / 'model.safetensors')
    assert torch.equal(TimmEncoder(NAME).network.pos_embed, network.pos_embed)


def test_missing_weights_say_which_file_to_download_and_where(no_hub, weights_folder):
    with pytest.raises(TPAError) as error:
        TimmEncoder(NAME)
    for part in (NAME, f'model.safetensors of the hub repository timm/{NAME}', f'{weights_folder}/{NAME}.safetensors'):
        assert part in str(error.value)


@pytest.mark.parametrize(
    ('settings', 'sentence'),
    [
        ({'model': 'vit_base_patch14_dinov'}, 'Did you mean vit_base_patch14_dinov2'),
        ({'model': 'test_vit.r161_in1k'}, "no weights 'r161_in1k' for test_vit. Choose from: r160_in1k"),
        ({'model': 'test_vit', 'pretrained': 'mae'}, "no weights 'mae'"),
        ({'model': 'convnext_atto', 'pretrained': False}, 'vision transformer for images of any size'),
        ({'model': 'samvit_base_patch16_224'}, 'has no weights for samvit_base_patch16_224'),
        ({'model': {'type': 'VisionTransformers'}, 'pretrained': False}, "no model class 'VisionTransformers'"),
        ({'model': {**TINY, 'dept': 3}, 'pretrained': False}, "'dept'"),
        ({'model': TINY}, 'no weights to download'),
        ({'model': TINY, 'pretrained': 'there/is/none.pth'}, 'Weights file not found: there/is/none.pth'),
    ],
)
def test_an_unknown_model_or_missing_weights_are_answered_with_a_sentence(settings, sentence):
    with pytest.raises(TPAError, match=sentence):
        TimmEncoder(**settings)


@pytest.mark.parametrize(
    ('other', 'misfit'),
    [
        ({'patch_size': 28}, 'patch_embed.proj.weight'),  # timm alone would resample the kernel
        ({'img_size': 112}, 'pos_embed'),  # and the table
        ({'embed_dim': 32}, r'cls_token is \(1, 1, 32\) in the file and \(1, 1, 16\) in the model'),
        ({'depth': 1}, 'blocks.1.norm1.weight is missing'),
        ({'depth': 3}, 'blocks.2.norm1.weight is unknown to the model'),
        ({'reg_tokens': 4}, 'pos_embed|reg_token'),
    ],
)
def test_a_file_of_another_model_is_refused_with_its_name_and_the_misfit(tmp_path, other, misfit):
    torch.save(TimmEncoder({**TINY, **other}, pretrained=False).network.state_dict(), tmp_path / 'other.pth')
    with pytest.raises(TPAError, match=misfit) as error:
        TimmEncoder(TINY, pretrained=tmp_path / 'other.pth')
    assert str(tmp_path / 'other.pth') in str(error.value)


@pytest.mark.parametrize('model', [TINY, REG, EVA, SAM])
@pytest.mark.parametrize('other', [TINY, REG, EVA, SAM])
def test_only_its_own_kind_of_file_fits_a_model(tmp_path, model, other):
    torch.save(TimmEncoder(other, pretrained=False).network.state_dict(), tmp_path / 'other.pth')
    if model is other:
        TimmEncoder(model, pretrained=tmp_path / 'other.pth')
    else:
        with pytest.raises(TPAError, match=r'other\.pth do not fit'):
            TimmEncoder(model, pretrained=tmp_path / 'other.pth')
