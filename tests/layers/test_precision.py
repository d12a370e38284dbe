"""The precision of networks: 'auto' is half precision on CUDA and float32 elsewhere, and is reported as what it is."""

from __future__ import annotations

import pytest
import torch

from tests.helpers.zoo import TINY_CLIP, ZOO, proxy
from tpa_mmseg.encoders import CLIPEncoder, TimmEncoder
from tpa_mmseg.layers.precision import used_precision

CPU, CUDA = torch.device('cpu'), torch.device('cuda', 0)


@pytest.fixture(params=[(7, 5), (8, 0), (9, 0)], ids=['Turing', 'Ampere', 'Hopper'])
def capability(request, monkeypatch):
    """A GPU of this generation, as PyTorch would report it."""
    monkeypatch.setattr(torch.cuda, 'get_device_capability', lambda device: request.param)
    return request.param


def test_auto_is_half_precision_that_the_gpu_has(capability):
    modern = capability >= (8, 0)
    assert used_precision('auto', CUDA, 'float16') == 'float16'
    assert used_precision('auto', CUDA, 'bfloat16') == ('bfloat16' if modern else 'float16')


@pytest.mark.parametrize('device', ['cpu', 'mps', 'meta'])
def test_auto_is_float32_on_other_devices(device):
    assert used_precision('auto', torch.device(device), 'float16') == 'float32'


@pytest.mark.parametrize('precision', ['float32', 'float16', 'bfloat16'])
def test_what_a_config_states_is_used_everywhere(precision):
    assert used_precision(precision, CPU, 'float16') == used_precision(precision, CUDA, 'float16') == precision


def test_fingerprints_have_the_precision_that_is_used():
    encoders = [TimmEncoder(proxy(8)['model'], pretrained=False), CLIPEncoder({'model': TINY_CLIP})]
    for encoder in encoders:
        assert encoder.fingerprint()['precision'] == 'float32'
    host = ZOO['Trident']()
    settings = host.fingerprint()
    assert settings['precision'] == settings['sam_precision'] == settings['proxy']['precision'] == 'float32'
    reduced = ZOO['Trident'](precision='bfloat16', sam={'model': host.sam.model.__dict__, 'checkpoint': False})
    assert reduced.fingerprint()['precision'] == 'bfloat16'


def test_a_network_that_is_moved_reports_the_precision_of_its_new_device(capability, monkeypatch):
    encoder, host = TimmEncoder(proxy(8)['model'], pretrained=False), ZOO['ProxyCLIP']()
    # What a move to CUDA changes, without a GPU.
    monkeypatch.setattr(torch.Tensor, 'device', CUDA)
    modern = capability >= (8, 0)
    assert encoder.precision == ('bfloat16' if modern else 'float16')
    assert host.tower.precision == host.proxy.precision == 'float16'
