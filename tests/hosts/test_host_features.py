"""HostFeatures: the encoder inside a host serves TPA too, in the host's own pass."""

from __future__ import annotations

import json

import pytest
import torch

from tests.helpers.zoo import ZOO, images
from tpa_mmseg.encoders import PixelNormalization, TimmEncoder
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts import HostFeatures
from tpa_mmseg.hosts.window_features import image_features
from tpa_mmseg.hosts.windows import Sliding
from tpa_mmseg.segmentors import TPASegmentor

HOSTS = ('ProxyCLIP', 'ProxyCLIP whole', 'ProxyCLIP with FSA', 'Trident', 'Trident with refinement')
SIZES = [(64, 96), (57, 75), (64, 96)]
pytestmark = pytest.mark.filterwarnings('ignore:SAM should run on the original image')


def batch(*sizes) -> dict:
    return {'inputs': [(image * 60 + 120).clamp(0, 255).byte() for image in images(*sizes)], 'data_samples': None}


def model_of(name: str) -> TPASegmentor:
    return TPASegmentor(ZOO[name](), {'type': 'HostFeatures'}, anchors={'k': 0.5, 'k_min': 1}, fusion={'lambda_': 50.0})


@pytest.fixture
def passes(monkeypatch) -> list[int]:
    """Images or windows in each call of an encoder's network."""
    calls, run = [], TimmEncoder.dense
    monkeypatch.setattr(TimmEncoder, 'dense', lambda self, x: calls.append(len(x)) or run(self, x))
    return calls


@pytest.mark.parametrize('name', HOSTS)
def test_the_encoder_looks_at_every_window_once(name, passes):
    model, data = model_of(name), batch(*SIZES)
    model.host.predict(**model.data_preprocessor(data))
    alone, passes[:] = sum(passes), []
    bank = model.new_bank()
    for evidence, _ in model.look(data):
        bank.add(evidence)
    assert sum(passes) == alone > 0
    model.set_bank(bank)
    passes.clear()
    model.test_step(data)
    assert sum(passes) == alone


@pytest.mark.parametrize('name', HOSTS)
def test_the_host_keeps_its_labels_and_tpa_adapts_them(name):
    model, data = model_of(name), batch(*SIZES)
    expected = [sample.pred_sem_seg.data for sample in model.host.test_step(data)]
    bank = model.new_bank()
    bank.sums, bank.counts = torch.randn_like(bank.sums), bank.counts + 10
    model.set_bank(bank)
    results = model.test_step(data)
    assert all(torch.equal(result.host_sem_seg.data, own) for result, own in zip(results, expected, strict=True))
    assert any(not torch.equal(result.pred_sem_seg.data, own) for result, own in zip(results, expected, strict=True))


@pytest.mark.parametrize('name', HOSTS)
def test_features_of_a_batch_are_those_of_a_pass_of_the_proxy_alone(name):
    model = model_of(name)
    data = model.data_preprocessor(batch(*SIZES))
    normalization = PixelNormalization.of(model.data_preprocessor)
    for image, phi in zip(data['inputs'], model.extract_feat(data['inputs']), strict=True):
        torch.testing.assert_close(phi, model.encoder(image, normalization), atol=1e-5, rtol=1e-5)
        assert phi.shape[0] == model.encoder.dim


def test_the_features_of_a_whole_image_are_those_of_the_encoder_itself():
    """Without windows, and with whole patches, nothing differs from a pass of the encoder's own."""
    model = model_of('ProxyCLIP whole')
    data = model.data_preprocessor(batch((56, 84)))
    own = model.host.proxy(data['inputs'][0], PixelNormalization.of(model.data_preprocessor))
    torch.testing.assert_close(model.extract_feat(data['inputs'])[0], own, atol=1e-4, rtol=1e-4)


def test_aligned_windows_are_averaged_where_they_overlap():
    """Windows of 4 patches of 8 pixels, 2 patches apart: the middle two of six columns are in both."""
    left, right = torch.randn(3, 4, 4), torch.randn(3, 4, 4)
    joined = image_features([left, right], Sliding(32, 16), (32, 48))
    expected = torch.cat((left[..., :2], (left[..., 2:] + right[..., :2]) / 2, right[..., 2:]), 2)
    torch.testing.assert_close(joined, expected)


@pytest.mark.parametrize('size', [(32, 53), (41, 32), (20, 30), (90, 77)])
def test_windows_anywhere_join_a_smooth_map_smoothly(size):
    """Features that are the places of the patches come back as the places of the image's patches."""
    sliding = Sliding(32, 16, pad_to=8)

    def places(spans) -> list[torch.Tensor]:
        return [(torch.arange(span.padded // 8) + 0.5) * 8 - span.before + span.start for span in spans]

    down, across = (places(sliding.spans(side)) for side in size)
    maps = [torch.stack(torch.meshgrid(y, x, indexing='ij')) for y in down for x in across]
    joined = image_features(maps, sliding, size)
    for axis, side in enumerate(size):
        count = joined.shape[1 + axis]
        centers = (torch.arange(count) + 0.5) * side / count
        # At the border a window is not continued beyond the center of its last patch.
        assert (joined[axis].movedim(axis, 0).flatten(1).mean(1) - centers).abs().max() < 4
        assert abs(count - side / 8) <= 0.5


def test_its_fingerprint_is_its_own():
    model = model_of('ProxyCLIP')
    fingerprint = model.encoder.fingerprint()
    assert json.loads(json.dumps(fingerprint)) == fingerprint
    assert fingerprint['type'] == 'HostFeatures' and fingerprint['proxy'] == model.host.proxy.fingerprint()
    other = TPASegmentor(ZOO['ProxyCLIP'](slide_stride=56), {'type': 'HostFeatures'})
    assert other.encoder.fingerprint() != fingerprint


def test_the_weights_are_not_counted_twice():
    model = model_of('ProxyCLIP')
    assert len(list(model.parameters())) == len(list(model.host.parameters()))
    assert model.state_dict().keys() == {f'host.{key}' for key in model.host.state_dict()}


@pytest.mark.parametrize('name', ['SCLIP', 'TENT around ProxyCLIP'])
def test_a_host_without_an_encoder_is_refused(name):
    with pytest.raises(TPAError, match='needs a host that runs an encoder itself'):
        TPASegmentor(ZOO[name](), {'type': 'HostFeatures'})


def test_alone_it_says_where_it_belongs():
    with pytest.raises(TPAError, match='is an encoder of a TPASegmentor'):
        HostFeatures().fingerprint()
