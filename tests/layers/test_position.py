"""Position tables: the rule of each family, and what is kept between images."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tpa_mmseg.encoders import TimmEncoder
from tpa_mmseg.layers.position import RULES, PositionTable, rule_of_family

TINY = {'embed_dim': 16, 'depth': 1, 'num_heads': 2, 'img_size': 32, 'patch_size': 8}


@pytest.mark.parametrize(
    ('name', 'rule'),
    [
        ('vit_base_patch8_224.dino', 'dino'),
        ('vit_small_patch16_224.dino', 'dino'),
        ('vit_base_patch14_dinov2.lvd142m', 'dino'),
        ('vit_base_patch14_dinov2', 'dino'),
        ('vit_base_patch14_reg4_dinov2.lvd142m', 'timm'),
        ('vit_base_patch16_224.mae', 'size'),
        ('vit_base_patch16_dinov3.lvd1689m', 'timm'),
        ('vit_base_patch16_224.augreg_in21k', 'timm'),
        ('samvit_base_patch16.sa1b', 'timm'),
    ],
)
def test_the_family_of_a_name_decides_the_rule(name, rule):
    assert rule_of_family(name) == rule


@pytest.mark.parametrize('rule', RULES)
def test_the_native_grid_gets_the_table_untouched(rule):
    table = torch.randn(1, 1 + 12, 5)
    assert PositionTable(rule, (3, 4), prefix=1).at(table, (3, 4)) is table


@pytest.mark.parametrize('rule', RULES)
@pytest.mark.parametrize('grid', [(1, 1), (4, 3), (1, 12), (9, 2), (30, 41)])
def test_every_grid_keeps_the_prefix_and_has_an_entry_per_patch(rule, grid):
    table = torch.randn(1, 2 + 12, 5)
    resized = PositionTable(rule, (3, 4), prefix=2).at(table, grid)
    assert resized.shape == (1, 2 + grid[0] * grid[1], 5)
    assert torch.equal(resized[:, :2], table[:, :2])


def test_dino_resizes_even_to_a_grid_of_as_many_patches():
    table = torch.randn(1, 1 + 16, 5)
    resized = PositionTable('dino', (4, 4), prefix=1).at(table, (2, 8))
    square = table[:, 1:].transpose(1, 2).reshape(1, 5, 4, 4)
    expected = F.interpolate(square, scale_factor=(2.1 / 4, 8.1 / 4), mode='bicubic').flatten(2).transpose(1, 2)
    assert torch.equal(resized[:, 1:], expected)


def test_mae_resizes_by_size_without_antialiasing():
    table = torch.randn(1, 1 + 16, 5)
    resized = PositionTable('size', (4, 4), prefix=1).at(table, (3, 7))
    square = table[:, 1:].transpose(1, 2).reshape(1, 5, 4, 4)
    expected = F.interpolate(square, size=(3, 7), mode='bicubic').flatten(2).transpose(1, 2)
    assert torch.equal(resized[:, 1:], expected)


def test_the_rule_named_timm_is_what_timm_itself_does():
    encoder = TimmEncoder({**TINY, 'reg_tokens': 2}, pretrained=False, position='timm')
    images = torch.randn(2, 3, 24, 56)
    tokens = encoder.network.forward_features(images)[:, 3:]
    torch.testing.assert_close(encoder.dense(images), tokens.transpose(1, 2).reshape(2, 16, 3, 7))


def test_weights_loaded_after_an_image_replace_the_kept_table():
    encoder = TimmEncoder(TINY, pretrained=False, position='dino')
    other = TimmEncoder(TINY, pretrained=False, position='dino')
    images = torch.randn(1, 3, 40, 48)
    before = encoder.dense(images)
    encoder.load_state_dict(other.state_dict())
    assert not torch.allclose(encoder.dense(images), before)
    assert torch.equal(encoder.dense(images), other.dense(images))


def test_only_a_few_grids_are_kept():
    table = torch.randn(1, 9, 4)
    tables = PositionTable('size', (3, 3), prefix=0)
    for side in range(4, 40):
        tables.at(table, (side, side))
    assert len(tables._kept) < 10
    assert tables.at(table, (39, 39)) is tables.at(table, (39, 39))
