"""Features equal those of the original implementations of DINO, DINOv2, MAE and SAM."""

from __future__ import annotations

import pytest
import torch

from tpa_mmseg.encoders import TimmEncoder

VIT = {'embed_dim': 32, 'depth': 2, 'num_heads': 2}
DINO16 = {**VIT, 'img_size': 112, 'patch_size': 16}
DINOV2_REG = {
    **VIT,
    'img_size': 98,
    'patch_size': 14,
    'init_values': 1e-5,
    'reg_tokens': 4,
    'no_embed_class': True,
}
SAM = {
    'type': 'VisionTransformerSAM',
    'img_size': 160,
    'embed_dim': 32,
    'depth': 3,
    'num_heads': 2,
    'window_size': 4,
    'global_attn_indexes': (2,),
    'neck_chans': 24,
    'use_rel_pos': True,
}


@pytest.mark.parametrize(
    ('family', 'tag', 'model', 'position'),
    [
        ('dino16', 'native', DINO16, 'dino'),
        ('dino16', 'rect', DINO16, 'dino'),
        ('dinov2_reg', 'native', DINOV2_REG, 'timm'),
        ('dinov2_reg', 'rect', DINOV2_REG, 'timm'),
        ('mae', 'native', DINO16, 'size'),
    ],
)
def test_features_equal_the_original_implementation(golden, golden_weights, family, tag, model, position):
    encoder = TimmEncoder(model, pretrained=golden_weights(family), position=position)
    features = encoder.dense(golden[f'{family}/{tag}/image'])
    torch.testing.assert_close(features, golden[f'{family}/{tag}/feats'], atol=1e-5, rtol=0)


def test_sam_neck_equals_the_original_implementation(golden, golden_weights):
    encoder = TimmEncoder(SAM, pretrained=golden_weights('sam'))
    torch.testing.assert_close(encoder.dense(golden['sam/image']), golden['sam/feats'], atol=1e-5, rtol=0)
    assert (encoder.dim, encoder.patch) == (24, 16)


@pytest.mark.parametrize('position', ['size', 'timm'])
def test_another_position_rule_is_visibly_wrong_on_another_grid(golden, golden_weights, position):
    encoder = TimmEncoder(DINO16, pretrained=golden_weights('dino16'), position=position)
    difference = encoder.dense(golden['dino16/rect/image']) - golden['dino16/rect/feats']
    assert difference.abs().max() > 0.05
