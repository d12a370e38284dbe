"""Frozen blocks give what their modules give, and leave what enters them as it is."""

from __future__ import annotations

import pytest
import timm.models.vision_transformer as timm_vit
import torch
from torch import nn
from torch.testing import assert_close

from tpa_mmseg.encoders.timm_encoder import run_block
from tpa_mmseg.layers.feed_forward import feed_forward, residual

MANY_TOKENS = 700  # more than go through the hidden layer together


@pytest.fixture
def layers():
    torch.manual_seed(0)
    return nn.LayerNorm(8), nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8)


@pytest.mark.parametrize('shape', [(2, 5, 8), (1, MANY_TOKENS, 8), (3, MANY_TOKENS // 2, 8)])
@torch.no_grad()
def test_tokens_go_through_all_layers(layers, shape):
    tokens = torch.randn(shape)
    before = tokens.clone()
    assert_close(feed_forward(tokens, *layers), nn.Sequential(*layers)(before), atol=1e-6, rtol=0)
    assert torch.equal(tokens, before)


def test_gradients_are_those_of_the_layers(layers):
    tokens = torch.randn(1, MANY_TOKENS, 8)
    weight = layers[0].weight
    (ours,) = torch.autograd.grad(residual(tokens, feed_forward(tokens, *layers)).square().sum(), weight)
    (theirs,) = torch.autograd.grad((tokens + nn.Sequential(*layers)(tokens)).square().sum(), weight)
    assert_close(ours, theirs)


def test_a_sum_has_the_wider_type():
    narrow, wide = torch.ones(3, dtype=torch.bfloat16), torch.full((3,), 1 / 3)
    assert_close(residual(wide, narrow.clone()), wide + narrow)
    assert_close(residual(narrow, wide.clone()), wide + narrow)


@pytest.mark.parametrize('options', [{}, {'init_values': 0.5}, {'qk_norm': True}, {'scale_mlp_norm': True}], ids=str)
@torch.no_grad()
def test_blocks_of_timm_give_what_their_forward_gives(options):
    torch.manual_seed(0)
    block = timm_vit.Block(16, 2, qkv_bias=True, **options).eval()
    tokens = torch.randn(2, MANY_TOKENS, 16)
    before = tokens.clone()
    assert_close(run_block(block, tokens), block(before), atol=1e-5, rtol=0)
    assert torch.equal(tokens, before)
