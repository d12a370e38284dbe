"""Reading, checking and naming weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from mmengine.logging import MessageHub
from torch import nn

from tpa_mmseg.errors import TPAError
from tpa_mmseg.weights.files import digest, find, load_into, load_state_dict, local_path, weights_dir


class Command:
    """Runs a command where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return exec, (f'open({str(self.path)!r}, "w")',)


def test_weights_lie_in_the_folder_of_the_environment_or_below_the_current_one(weights_folder, monkeypatch):
    assert weights_dir() == weights_folder
    monkeypatch.delenv('TPA_WEIGHTS')
    assert weights_dir() == Path('data/weights')


@pytest.mark.parametrize('suffix', ['.safetensors', '.pth', '.pt', '.bin'])
def test_find_knows_every_format_of_a_name_with_dots(weights_folder, suffix):
    assert find('vit_base.in1k') is None
    path = weights_folder / f'vit_base.in1k{suffix}'
    path.touch()
    assert find('vit_base.in1k') == path
    assert find('vit_base') is None


@pytest.mark.parametrize('wrap', [dict, lambda s: {'model': s}, lambda s: {'state_dict': s, 'epoch': 3}])
@pytest.mark.parametrize('prefix', ['', 'module.'])
def test_tensors_are_found_inside_a_training_checkpoint(tmp_path, wrap, prefix):
    torch.save(wrap({f'{prefix}weight': torch.ones(2)}), tmp_path / 'a.pth')
    assert torch.equal(load_state_dict(tmp_path / 'a.pth')['weight'], torch.ones(2))


def test_a_safetensors_file_is_read(tmp_path):
    safetensors.torch.save_file({'weight': torch.ones(2)}, tmp_path / 'a.safetensors')
    assert torch.equal(load_state_dict(tmp_path / 'a.safetensors')['weight'], torch.ones(2))


def test_a_checkpoint_of_mmengine_is_read_in_spite_of_its_log_buffers(tmp_path):
    hub = MessageHub.get_instance('test_weights')
    hub.update_scalar('loss', np.float64(0.5))
    torch.save({'message_hub': hub.state_dict(), 'state_dict': {'weight': torch.ones(2)}}, tmp_path / 'a.pth')
    assert list(load_state_dict(tmp_path / 'a.pth')) == ['weight']


def test_nothing_in_a_file_is_executed(tmp_path):
    torch.save({'optimizer': Command(tmp_path / 'ran'), 'state_dict': {'weight': torch.ones(2)}}, tmp_path / 'a.pth')
    load_state_dict(tmp_path / 'a.pth')
    assert not (tmp_path / 'ran').exists()


@pytest.mark.parametrize('name', ['a.pth', 'a.safetensors'])
@pytest.mark.parametrize('content', [b'', b'<html>not found</html>' * 99, b'PK\x03\x04 cut off'])
def test_a_damaged_file_is_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TPAError, match=str(tmp_path / name)):
        load_state_dict(tmp_path / name)


@pytest.mark.parametrize('content', [[torch.ones(2)], {'epoch': 3}, {}, torch.ones(2)])
def test_a_file_without_a_state_dict_is_named(tmp_path, content):
    torch.save(content, tmp_path / 'a.pth')
    with pytest.raises(TPAError, match='a.pth holds no state dict'):
        load_state_dict(tmp_path / 'a.pth')


def test_a_file_of_another_model_leaves_the_module_as_it_was():
    module = nn.Linear(3, 2)
    before = digest(module)
    with pytest.raises(TPAError, match=r'a\.pth do not fit Linear \(bias is missing; weight is \(2, 4\) in the file'):
        load_into(module, {'weight': torch.ones(2, 4)}, 'a.pth')
    assert digest(module) == before


def test_tensors_that_a_module_may_lack_are_left_out():
    module = nn.Linear(3, 2)
    state = {'weight': torch.ones(2, 3), 'bias': torch.ones(2), 'head.weight': torch.ones(1)}
    with pytest.raises(TPAError, match='head.weight is unknown'):
        load_into(module, state, 'a.pth')
    load_into(module, state, 'a.pth', unused=('head',))
    assert torch.equal(module.weight, torch.ones(2, 3))


def test_a_digest_names_weights_and_not_objects():
    one, other = nn.Linear(64, 64), nn.Linear(64, 64)
    assert digest(one) != digest(other)
    other.load_state_dict(one.state_dict())
    assert digest(one) == digest(other)
    assert digest(one.half()) != digest(other)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize('shape', [(), (0, 3), (7,), (40, 50)])
def test_a_digest_reads_tensors_of_every_type_and_shape(dtype, shape):
    module = nn.Module()
    module.register_buffer('tensor', torch.zeros(shape, dtype=dtype))
    before = digest(module)
    module.tensor = torch.ones(shape, dtype=dtype)
    assert (digest(module) != before) == (module.tensor.numel() > 0)


def test_a_digest_does_not_depend_on_memory_layout():
    one, other = nn.Linear(5, 5), nn.Linear(5, 5)
    other.load_state_dict(one.state_dict())
    other.weight.data = other.weight.data.T.contiguous().T
    assert digest(one) == digest(other)


def test_a_file_of_the_package_has_an_address():
    assert local_path('tpa_mmseg://miniature/weights/fcn.safetensors').is_file()
    assert load_state_dict('tpa_mmseg://miniature/weights/fcn.safetensors')
    assert local_path('~/a.pth') == Path('~/a.pth').expanduser()
