"""Linear layers by oneDNN: the numbers of F.linear, and only where oneDNN may be asked."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tpa_mmseg.encoders import linear as module
from tpa_mmseg.encoders.linear import QuickLinear, linear, quicken, usual_linear

needs_onednn = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, '_linear_pointwise'), reason='this PyTorch was built without oneDNN'
)


@pytest.fixture
def by_onednn(monkeypatch):
    """Whatever the processor is, oneDNN counts as faster."""
    monkeypatch.setattr(module, '_onednn_is_faster', lambda: True)


@pytest.fixture
def usual_calls(monkeypatch):
    """How often F.linear was asked."""
    calls, real = [], F.linear

    def counted(*args):
        calls.append(args)
        return real(*args)

    monkeypatch.setattr(F, 'linear', counted)
    return calls


def _problem(*shape: int, out: int = 48) -> tuple:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(size, generator=generator) for size in ((*shape, 32), (out, 32), (out,)))


@needs_onednn
@pytest.mark.parametrize('shape', [(7,), (2, 7), (1, 5, 3), (0,)], ids=str)
@pytest.mark.parametrize('with_bias', [True, False], ids=['bias', 'no bias'])
def test_numbers_of_linear(by_onednn, usual_calls, shape, with_bias):
    x, weight, bias = _problem(*shape)
    bias = bias if with_bias else None
    with torch.no_grad():
        ours = linear(x, weight, bias)
    assert not usual_calls
    torch.testing.assert_close(ours, F.linear(x, weight, bias), rtol=1e-5, atol=1e-5)


def _column_slice(x, weight, bias):
    return x[:, :16].contiguous(), weight[:, :16], bias


@needs_onednn
@pytest.mark.parametrize(
    ('around', 'change'),
    [
        (torch.enable_grad, None),
        (usual_linear, None),
        (lambda: torch.backends.mkldnn.flags(enabled=False), None),
        (lambda: torch.autocast('cpu', torch.float16), None),
        (nullcontext, lambda *tensors: (t.double() for t in tensors)),
        (nullcontext, lambda *tensors: (t.to('meta') for t in tensors)),
        (nullcontext, _column_slice),
        (nullcontext, lambda x, weight, bias: (x.T.contiguous().T, weight, bias)),
    ],
    ids=[
        'gradients',
        'usual',
        'switched off',
        'autocast',
        'float64',
        'other device',
        'weight in strides',
        'x in strides',
    ],
)
def test_what_onednn_is_not_asked(by_onednn, usual_calls, around, change):
    problem = _problem(7)
    with torch.no_grad(), around():
        linear(*(change(*problem) if change else problem))
    assert len(usual_calls) == 1


def test_other_processors_keep_the_usual_way(monkeypatch, usual_calls):
    monkeypatch.setattr(module, '_onednn_is_faster', lambda: False)
    with torch.no_grad():
        linear(*_problem(7))
    assert len(usual_calls) == 1


def test_quickened_network_is_the_same_network():
    network = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.MultiheadAttention(16, 2, batch_first=True).out_proj)
    seen = []
    network[0].register_forward_hook(lambda layer, args, out: seen.append(tuple(out.shape)))
    x, names = torch.randn(3, 8), list(network.state_dict())
    with torch.no_grad():
        before = network(x)
        assert quicken(network) is network
        after = network(x)
    assert [type(layer) for layer in network if not isinstance(layer, nn.GELU)] == [QuickLinear, QuickLinear]
    assert list(network.state_dict()) == names
    assert seen == [(3, 16), (3, 16)]
    torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-6)


def test_a_layer_with_a_forward_of_its_own_is_left_alone():
    class Doubling(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    network = nn.Sequential(Doubling(4, 4))
    assert type(quicken(network)[0]) is Doubling


def test_gradients_flow_through_a_quickened_layer(by_onednn):
    layer = quicken(nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2)))
    layer[1].requires_grad_(False)
    layer(torch.randn(3, 4)).square().sum().backward()
    assert layer[0].weight.grad.abs().sum() > 0
