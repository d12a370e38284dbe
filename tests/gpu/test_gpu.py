"""On a real GPU: the labels of a CPU, kernels that agree with the eager path, half precision, two ranks."""

from __future__ import annotations

import copy

import pytest
import torch
from mmseg.structures import SegDataSample

from tests.helpers.world import make_world, results, run_in_process, run_ranks
from tests.helpers.zoo import ZOO, clip_options, images
from tpa_mmseg.core import Alarms, PrototypeBank
from tpa_mmseg.encoders import CLIPEncoder
from tpa_mmseg.segmentors import TPASegmentor

SIZES = [(48, 64), (37, 53), (64, 41)]
pytestmark = pytest.mark.filterwarnings('ignore:SAM should run on the original image')


def model_of(name: str, precision: str = 'float32') -> TPASegmentor:
    model = TPASegmentor(ZOO[name](), CLIPEncoder(clip_options()['clip']), anchors={'k': 0.5, 'k_min': 1})
    for part in model.modules():  # the proxy and SAM inside the host too
        if hasattr(part, '_precision'):
            part._precision = precision
    return model


def batch() -> dict:
    raw = [(image * 60 + 120).clamp(0, 255).byte() for image in images(*SIZES)]
    samples = [SegDataSample(metainfo={'ori_shape': size, 'img_path': f'{i}.png'}) for i, size in enumerate(SIZES)]
    return {'inputs': raw, 'data_samples': samples}


def labels(model: TPASegmentor, bank: PrototypeBank | None = None) -> tuple[torch.Tensor, PrototypeBank]:
    """Labels of the host and of TPA for all pixels of the batch, and the bank of its images."""
    if bank is None:
        bank = model.new_bank()
        for evidence, _ in model.look(batch()):
            bank.add(evidence)
    model.host.reset()
    model.set_bank(bank)
    found = model.test_step(batch())
    flat = [torch.stack((one.host_sem_seg.data, one.pred_sem_seg.data)).flatten(1).cpu() for one in found]
    return torch.cat(flat, 1), bank


def differing(one: torch.Tensor, other: torch.Tensor) -> float:
    return (one != other).float().mean().item()


@pytest.mark.parametrize('name', ZOO)
def test_a_gpu_gives_the_labels_of_a_cpu(name):
    model = model_of(name)
    expected, bank = labels(model)
    with torch.backends.cudnn.flags(allow_tf32=False):  # matrix products have none by default
        found, on_gpu = labels(model.to('cuda'))
    assert differing(found, expected) < 0.02
    torch.testing.assert_close(on_gpu.sums.cpu(), bank.sums, rtol=0.02, atol=0.05 * bank.sums.abs().max().item())


@pytest.mark.parametrize('name', ['SCLIP with area_thd', 'NACLIP', 'ProxyCLIP whole', 'MaskCLIP'])
def test_kernels_give_the_labels_of_the_eager_path(name, monkeypatch):
    model = model_of(name).to('cuda')
    fused, bank = labels(model)
    monkeypatch.setenv('TPA_KERNELS', '0')
    eager, other = labels(model)
    assert differing(fused, eager) < 1e-3
    torch.testing.assert_close(bank.counts, other.counts, rtol=0.01, atol=2)


@pytest.mark.parametrize('name', ['SCLIP', 'ProxyCLIP', 'Trident'])
@pytest.mark.parametrize('precision', ['auto', 'float16', 'bfloat16'])
def test_half_precision_is_used_and_changes_few_labels(name, precision):
    exact, bank = labels(model_of(name).to('cuda'))
    model = model_of(name, precision).to('cuda')
    assert model.fingerprint()['host']['precision'] == ('float16' if precision == 'auto' else precision)
    reduced, _ = labels(model, copy.deepcopy(bank))
    assert differing(reduced, exact) < 0.1
    (evidence, *_) = (one for one, _ in model.look(batch()))
    assert evidence.scores.probabilities().dtype == torch.float32
    assert all(phi.dtype == torch.float32 for phi in evidence.features.values())


@pytest.mark.parametrize('name', ['SCLIP', 'CLIP with ResCLIP', 'T3A around NACLIP', 'LAME around NACLIP'])
def test_nothing_waits_between_an_image_and_its_labels(name, monkeypatch):
    model = model_of(name).to('cuda')
    labels(model)
    data = model.data_preprocessor(batch())
    monkeypatch.setattr(Alarms, 'check', lambda self: None)  # the one wait, after the last kernel of an image
    torch.cuda.set_sync_debug_mode('error')
    try:
        model.predict(**data)
    finally:
        torch.cuda.set_sync_debug_mode('default')


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason='needs two GPUs')
def test_kernels_run_on_a_gpu_that_is_not_the_current_one():
    model = model_of('SCLIP with area_thd')
    first, second = (labels(model.to(f'cuda:{number}'))[0] for number in (0, 1))
    assert differing(first, second) < 1e-3


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason='needs two GPUs')
def test_two_ranks_on_two_gpus_give_the_numbers_of_one(tmp_path):
    make_world(tmp_path)
    run_in_process('test', tmp_path / 'config.py', '--work-dir', tmp_path / 'one')
    done = run_ranks(2, 'test', tmp_path / 'config.py', '--work-dir', tmp_path / 'two')
    assert done.returncode == 0, done.stderr[-2000:]
    one, two = (PrototypeBank.load(tmp_path / name / 'bank.safetensors') for name in ('one', 'two'))
    assert torch.equal(one.counts, two.counts) and one.fingerprint == two.fingerprint
    assert results(tmp_path / 'one')['tpa'] == results(tmp_path / 'two')['tpa']
