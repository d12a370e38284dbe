"""CLIP's blocks, taken apart, give what they give in one piece."""

from __future__ import annotations

import pytest
import torch
from open_clip.transformer import QuickGELU, ResidualAttentionBlock
from torch.testing import assert_close

from tpa_mmseg.clip.tower import run_block


@pytest.mark.parametrize('options', [{}, {'act_layer': QuickGELU}, {'ls_init_value': 0.5}], ids=str)
def test_a_block_gives_what_its_forward_gives(options):
    torch.manual_seed(0)
    block = ResidualAttentionBlock(16, 2, **options).eval()
    tokens = torch.randn(2, 50, 16)
    before = tokens.clone()
    with torch.no_grad():
        assert_close(run_block(block, tokens), block(before), atol=1e-5, rtol=0)
    assert torch.equal(tokens, before)


def test_gradients_reach_the_norms_of_a_block():
    torch.manual_seed(0)
    block = ResidualAttentionBlock(16, 2).eval()
    tokens = torch.randn(1, 50, 16)
    weights = [block.ln_1.weight, block.ln_2.weight]
    ours = torch.autograd.grad(run_block(block, tokens).square().sum(), weights)
    theirs = torch.autograd.grad(block(tokens).square().sum(), weights)
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other, rtol=1e-4, atol=1e-4)
