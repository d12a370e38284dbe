"""Blocks by torch.compile: the same numbers, one program for all sizes, and a way back where it fails."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from tests.helpers.zoo import TINY_CLIP, images, proxy
from tpa_mmseg.clip.source import CLIPSpec
from tpa_mmseg.encoders import TimmEncoder
from tpa_mmseg.layers.compiling import compiled


def double(block: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    return 2 * block(tokens)


def test_compiled_networks_give_the_same_features(monkeypatch):
    """With the tracer alone: what follows it on a GPU is PyTorch's own."""
    traced, compile = [], torch.compile

    def without_compiler(function, **options):
        traced.append(options)
        return compile(function, backend='eager', **options)

    monkeypatch.setattr(torch, 'compile', without_compiler)
    compiled.cache_clear()
    batches = [torch.stack(images(size, size)) for size in ((32, 48), (64, 40), (48, 48))]
    with torch.no_grad(), warnings.catch_warnings():
        # Other warnings are PyTorch's own, e.g. about Python 3.13.0.
        warnings.filterwarnings('error', message='compile=True has no effect')
        towers, encoders = [], []
        for option in (False, True):
            torch.manual_seed(0)
            towers.append(CLIPSpec(TINY_CLIP, compile=option).tower())
            encoders.append(TimmEncoder(proxy(8)['model'], pretrained=False, compile=option))
        for batch in batches:
            torch.testing.assert_close(towers[0].trunk(batch), towers[1].trunk(batch))
            torch.testing.assert_close(encoders[0].dense(batch), encoders[1].dense(batch))
    assert traced == [{'dynamic': True}] * 2
    compiled.cache_clear()


def test_where_compiling_fails_the_block_runs_as_it_is_after_one_warning(monkeypatch):
    def broken(function, **_):
        def run(*args):
            raise RuntimeError('no compiler found\nand a long trace')

        return run

    monkeypatch.setattr(torch, 'compile', broken)
    run, block = compiled.__wrapped__(double), nn.Identity()
    with torch.no_grad():
        with pytest.warns(UserWarning, match=r'torch.compile failed \(RuntimeError: no compiler found\)\.$'):
            assert run(block, torch.ones(1, 2, 3)).sum() == 12
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            assert run(block, torch.ones(1, 2, 3)).sum() == 12


def test_too_little_memory_is_not_a_failure_to_compile(monkeypatch):
    def full(*_):
        raise torch.cuda.OutOfMemoryError('CUDA out of memory')

    monkeypatch.setattr(torch, 'compile', lambda function, **_: full)
    with torch.no_grad(), pytest.raises(torch.cuda.OutOfMemoryError):
        compiled.__wrapped__(double)(nn.Identity(), torch.ones(1, 2, 3))


def test_a_network_without_our_blocks_says_that_it_is_not_compiled():
    eva = {'type': 'Eva', 'img_size': 32, 'patch_size': 8, 'embed_dim': 16, 'depth': 1, 'num_heads': 2}
    with pytest.warns(UserWarning, match='encoder.compile=True has no effect on Eva'):
        TimmEncoder(eva, pretrained=False, compile=True)
