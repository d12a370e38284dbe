"""Checkpoints from strangers: tensors and plain data are read, nothing runs."""

from __future__ import annotations

import pickle
import subprocess
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer
from mmengine.runner import CheckpointLoader

from tests.helpers.world import ROOT
from tpa_mmseg.errors import TPAError
from tpa_mmseg.weights import checkpoints
from tpa_mmseg.weights.checkpoints import read_checkpoint
from tpa_mmseg.weights.files import load_state_dict

PACKAGE = ROOT / 'tpa_mmseg'


class Calls:
    """Pickles as a call of a function."""

    def __init__(self, function: object, *args: object) -> None:
        self.call = function, args

    def __reduce__(self):
        return self.call


class Sets(Calls):
    """Pickles as a call whose result gets a state and items: every way in which a pickle reaches an object."""

    def __reduce__(self):
        return (*self.call, {'__dict__': {'a': 1}, 'mean': print}, iter([1, 2]), iter([('a', 1)]))


def hostile(ran: Path) -> dict[str, object]:
    """What a hostile checkpoint may hold beside its weights. All of it would create the file ``ran``."""
    code = f'open({str(ran)!r}, "w")'
    return {
        'exec': Calls(exec, code),
        'eval': Calls(eval, code),
        'subprocess': Calls(subprocess.call, ['touch', str(ran)]),
        'getattr': Calls(getattr, HistoryBuffer, 'register_statistics'),
        'getattr of an array': Calls(getattr, np.ndarray, 'tofile'),
        'state and items': Sets(HistoryBuffer),
        'history with a method': Sets(HistoryBuffer, [1.0], [1]),
        'numpy': Calls(np.fromfile, str(ran)),
    }


@pytest.mark.parametrize('name', hostile(Path('x')))
def test_nothing_of_a_hostile_file_runs(tmp_path: Path, name: str) -> None:
    ran, path = tmp_path / 'ran', tmp_path / 'evil.pth'
    torch.save({'state_dict': {'weight': torch.ones(2)}, 'meta': hostile(ran)[name]}, path)
    # The file is read with inert stand-ins, or refused with our own message.
    with suppress(TPAError):
        assert load_state_dict(path)['weight'].tolist() == [1, 1]
        assert type(read_checkpoint(path)['meta']).__name__ == '_Inert'
    assert not ran.exists()
    # Nothing is left behind in PyTorch's own list.
    with pytest.raises(pickle.UnpicklingError):
        torch.load(path, weights_only=True)


def test_a_nested_call_is_inert_too(tmp_path: Path) -> None:
    """A result of one stand-in is called by the next."""
    ran = tmp_path / 'ran'
    torch.save({'a': Calls(Calls, exec, Calls(str, f'open({str(ran)!r}, "w")'))}, tmp_path / 'evil.pth')
    read_checkpoint(tmp_path / 'evil.pth')
    assert not ran.exists()


def checkpoint() -> dict:
    """What a Runner of MMEngine saves."""
    loss = HistoryBuffer()
    loss.update(2.0)
    return {
        'state_dict': {'weight': torch.ones(2)},
        'message_hub': {'log_scalars': {'loss': loss}, 'resumed_keys': {'loss': True}},
        'meta': {'dataset_meta': {'classes': ('cat', 'dog'), 'palette': [[0, 0, 0], [1, 1, 1]]}, 'iter': 2},
        'own': ConfigDict(classes=('cat', 'dog')),
        'best': {'mIoU': np.float32(41.5), 'confusion': np.arange(4).reshape(2, 2)},
    }


def test_mmengine_loads_a_checkpoint_of_its_runner_with_the_classes(tmp_path: Path) -> None:
    torch.save(checkpoint(), tmp_path / 'iter_2.pth')
    read = CheckpointLoader.load_checkpoint(str(tmp_path / 'iter_2.pth'), map_location='cpu')
    assert read['state_dict']['weight'].tolist() == [1, 1]
    assert read['meta']['dataset_meta']['classes'] == ('cat', 'dog')
    assert read['own']['classes'] == ('cat', 'dog')


def test_mmengine_keeps_the_map_location(tmp_path: Path) -> None:
    torch.save({'state_dict': {'weight': torch.ones(2)}}, tmp_path / 'a.pth')
    read = CheckpointLoader.load_checkpoint(str(tmp_path / 'a.pth'), map_location='meta')
    assert read['state_dict']['weight'].is_meta
    with pytest.raises(FileNotFoundError, match='b.pth'):
        CheckpointLoader.load_checkpoint(str(tmp_path / 'b.pth'))


def test_a_program_is_refused_wherever_weights_are_read(tmp_path: Path) -> None:
    """A TorchScript archive, whose code runs when it is loaded."""
    with zipfile.ZipFile(tmp_path / 'a.pt', 'w') as archive:
        archive.writestr('a/code/__torch__.py', 'raise SystemExit')
    for load in (load_state_dict, read_checkpoint, CheckpointLoader.load_checkpoint):
        with pytest.raises(TPAError, match=r'a\.pt is a TorchScript archive.*tpa weights download'):
            load(str(tmp_path / 'a.pt'))


def test_a_compressed_checkpoint_is_refused(tmp_path: Path) -> None:
    """PyTorch does not compress: such a file unfolds to any size."""
    torch.save({'weight': torch.zeros(1000)}, tmp_path / 'a.pth')
    with zipfile.ZipFile(tmp_path / 'a.pth') as plain, zipfile.ZipFile(tmp_path / 'b.pth', 'w', 8) as packed:
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    with pytest.raises(TPAError, match=r'b\.pth cannot be read as weights \(it is compressed'):
        load_state_dict(tmp_path / 'b.pth')


@pytest.mark.filterwarnings('ignore::UserWarning:torch')
@pytest.mark.parametrize(
    'state',
    [
        {3: torch.ones(2)},
        {None: torch.ones(2), 'a': torch.ones(2)},
        {'a': torch.eye(2).to_sparse()},
        {'a': torch.ones(2, device='meta')},
        {'a': torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])},
        {'a': 1.5},
        [torch.ones(2)],
        5,
    ],
)
def test_what_is_not_a_state_dict_is_one_message(tmp_path: Path, state: object) -> None:
    torch.save(state, tmp_path / 'a.pth')
    with pytest.raises(TPAError, match=r'a\.pth (holds no state dict|cannot be read as weights)'):
        load_state_dict(tmp_path / 'a.pth')


def test_mmengine_names_a_damaged_checkpoint(tmp_path: Path) -> None:
    (tmp_path / 'a.pth').write_bytes(b'PK\x03\x04 damaged')
    with pytest.raises(TPAError, match=r'a\.pth cannot be read as weights'):
        CheckpointLoader.load_checkpoint(str(tmp_path / 'a.pth'))


def test_a_pytorch_that_is_not_safe_reads_no_pickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({'state_dict': {'weight': torch.ones(2)}}, tmp_path / 'a.pth')
    monkeypatch.setattr(checkpoints, 'OLDEST_SAFE_TORCH', '99.0')
    with pytest.raises(TPAError, match=r'a\.pth is a pickle file.*update PyTorch to 99\.0.*safetensors'):
        load_state_dict(tmp_path / 'a.pth')


@pytest.mark.parametrize('word', ['add_safe_globals', 'torch.jit.load', 'weights_only=False', 'allow_pickle=True'])
def test_the_package_never_trusts_a_file(word: str) -> None:
    assert [path.name for path in PACKAGE.rglob('*.py') if word in path.read_text(encoding='utf-8')] == []
