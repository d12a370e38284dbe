"""Damaged and forged files of every kind: they are read, or refused with our own error. Nothing else comes out."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.prepare import archives
from tpa_mmseg.core import PrototypeBank
from tpa_mmseg.errors import TPAError
from tpa_mmseg.prepare import prepare
from tpa_mmseg.prepare.context import from_map
from tpa_mmseg.prepare.sources import Limits, Sources
from tpa_mmseg.weights.files import load_state_dict

pytestmark = pytest.mark.filterwarnings('ignore::UserWarning')  # of PyTorch, about odd files

fuzz = settings(
    max_examples=120,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)

# What readers trip over: signs, overflows, and numbers that are none.
NUMBERS = (0, -1, 1, 2**31, 2**32, 2**63, -(2**63), 10**30, 1e308, float('nan'), float('inf'))
VALUES = st.one_of(
    st.sampled_from([*NUMBERS, None, True, '', 'a', '../x', '\x00', [], {}, [[]], [1, 'a'], {'a': 1}]),
    st.builds(lambda depth: json.loads('[' * depth + ']' * depth), st.integers(1, 300)),
)


@st.composite
def damage(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """Bytes flipped, inserted, removed and replaced by numbers; or the end cut off."""
    places = draw(
        st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.binary(min_size=1, max_size=8)), max_size=4)
    )
    cut = draw(st.one_of(st.just(1.0), st.floats(0, 1)))

    def apply(content: bytes) -> bytes:
        for place, kind, new in places:
            at = int(place * len(content))
            old = (0, 1, len(new), 8 * len(new))[kind]
            content = content[:at] + new + content[at + old :]
        return content[: int(cut * len(content))]

    return apply


@st.composite
def forgery(draw: st.DrawFn) -> Callable[[object], object]:
    """A JSON value with some of its parts replaced or removed, chosen by numbers."""
    changes = draw(st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=6), VALUES), min_size=1, max_size=3))

    def replaced(value: object, path: list[int], new: object) -> object:
        if not path or not isinstance(value, (dict, list)) or not value:
            return new
        key = (list(value) if isinstance(value, dict) else range(len(value)))[path[0] % len(value)]
        copy = dict(value) if isinstance(value, dict) else list(value)
        copy[key] = replaced(value[key], path[1:], new)
        return copy

    def apply(value: object) -> object:
        for path, new in changes:
            value = replaced(value, path, new)
        return value

    return apply


def check_bank(path: Path) -> None:
    bank = PrototypeBank.load(path)
    bank.prototypes()
    bank.coverage()
    bank.merge(PrototypeBank.load(path))
    bank.save(path)


@pytest.fixture(scope='module')
def bank(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    made = PrototypeBank(3, 4)
    made.sums += torch.arange(12).reshape(3, 4)
    made.counts += 7
    made.images, made.pool = 2, ['a.jpg', 'b.jpg']
    made.fingerprint = {'host': {'type': 'SCLIP', 'k': [1, 2.5]}, 'encoder': 'dino', 'classes': ['cat', 'dog', 'sky']}
    path = tmp_path_factory.mktemp('bank') / 'bank.safetensors'
    made.save(path)
    return path.read_bytes()


@fuzz
@given(change=damage())
def test_damaged_banks(tmp_path, bank, change):
    (tmp_path / 'bank').write_bytes(change(bank))
    with suppress(TPAError):
        check_bank(tmp_path / 'bank')


@fuzz
@given(change=forgery(), inner=st.booleans())
def test_forged_banks(tmp_path, bank, change, inner):
    """The header of the file, or the description of the bank in it, has other values."""
    length = int.from_bytes(bank[:8], 'little')
    header = json.loads(bank[8 : 8 + length])
    if inner:
        ((key, text),) = header['__metadata__'].items()
        header['__metadata__'][key] = json.dumps(change(json.loads(text)))
    else:
        header = change(header)
    forged = json.dumps(header).encode()
    (tmp_path / 'bank').write_bytes(len(forged).to_bytes(8, 'little') + forged + bank[8 + length :])
    with suppress(TPAError):
        check_bank(tmp_path / 'bank')


def checkpoint(legacy: bool = False) -> bytes:
    state = {'module.weight': torch.ones(2, 3), 'module.bias': torch.zeros(2, dtype=torch.float16)}
    buffer = io.BytesIO()
    content = {'state_dict': state, 'meta': {'classes': ('cat', 'dog'), 'path': Path('a')}, 3: np.float32(1)}
    torch.save(content, buffer, _use_new_zipfile_serialization=not legacy)
    return buffer.getvalue()


@pytest.mark.parametrize('content', [checkpoint(), checkpoint(legacy=True)], ids=['zip', 'legacy'])
@fuzz
@given(change=damage())
def test_damaged_checkpoints(tmp_path, content, change):
    (tmp_path / 'a.pth').write_bytes(change(content))
    with suppress(TPAError):
        load_state_dict(tmp_path / 'a.pth')


@fuzz
@given(
    names=st.lists(st.one_of(st.text(max_size=3), st.integers(), st.none()), min_size=1, max_size=3),
    value=st.sampled_from(['tensor', 'sparse', 'meta', 'quantized', 'array', 'text']),
    key=st.sampled_from([None, 'state_dict', 'model', 5]),
)
def test_odd_checkpoints(tmp_path, names, value, key):
    made = {
        'tensor': lambda: torch.ones(2),
        'sparse': lambda: torch.eye(2).to_sparse(),
        'meta': lambda: torch.ones(2, device='meta'),
        'quantized': lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
        'array': lambda: np.ones(2),
        'text': lambda: 'a',
    }
    state = {name: made[value]() for name in names}
    torch.save(state if key is None else {key: state}, tmp_path / 'a.pth')
    with suppress(TPAError):
        assert all(
            isinstance(name, str) and tensor.tolist() for name, tensor in load_state_dict(tmp_path / 'a.pth').items()
        )


@fuzz
@given(content=st.builds(lambda value, end: pickle.dumps(value, 2)[:end], VALUES, st.integers(1, 60)))
def test_pickles_that_are_no_checkpoint(tmp_path, content):
    (tmp_path / 'a.pth').write_bytes(content)
    with suppress(TPAError):
        load_state_dict(tmp_path / 'a.pth')


def square(*offset: int) -> np.ndarray:
    mask = np.zeros(archives.SIZE, dtype=bool)
    mask[offset[0] : 9, offset[1] : 9] = True
    return mask


INSTANCES = {
    'images': [{'id': 7, 'height': archives.SIZE[0], 'width': archives.SIZE[1], 'file_name': 'a.jpg'}],
    'annotations': [
        {'id': 1, 'image_id': 7, 'category_id': 1, 'iscrowd': 0, 'segmentation': [[1, 1, 9, 1, 9, 9.5, 2, 8]]},
        {'id': 2, 'image_id': 7, 'category_id': 3, 'iscrowd': 1,
         'segmentation': {'size': [*archives.SIZE], 'counts': [100, 50, 450]}},
        {'id': 3, 'image_id': 7, 'category_id': 3, 'iscrowd': 0,
         'segmentation': {'size': [*archives.SIZE], 'counts': archives.packed(square(2, 3))}},
    ],
}  # fmt: skip
CONTEXT = json.loads(archives.context_json({'2008_000001': [(2, square(0, 1))]}, {'2008_000001': 'val'}))
ANNOTATED = {
    'coco_object': (archives.coco_images(1), 'instances_val2017.json', INSTANCES),
    'context': (archives.voc2010(1), 'trainval_merged.json', CONTEXT),
}


@pytest.mark.parametrize('dataset', ANNOTATED)
@fuzz
@given(forge=forgery(), break_=st.one_of(st.none(), damage()))
def test_forged_and_damaged_annotations(tmp_path, dataset, forge, break_):
    images, name, content = ANNOTATED[dataset]
    text = json.dumps(content if break_ else forge(content)).encode()
    folder = archives.write_folder(tmp_path / 'source', {**images, name: break_(text) if break_ else text})
    (tmp_path / 'out' / '.prepared.tsv').unlink(missing_ok=True)
    with suppress(TPAError):
        prepare(dataset, [folder], tmp_path / 'out', workers=1)


@fuzz
@given(change=damage())
def test_damaged_matlab_files(change):
    with suppress(ValueError):  # the job adds the file's name
        from_map(change(archives.context_map(np.arange(12).reshape(3, 4))))


@pytest.mark.parametrize('ending', ['zip', 'tar', 'tar.gz'])
@fuzz
@given(change=damage())
def test_damaged_archives(tmp_path, ending, change):
    path = tmp_path / f'a.{ending}'
    write = archives.write_zip if ending == 'zip' else archives.write_tar
    path.write_bytes(
        change(write(path, {'val/a.jpg': bytes(700), 'val/b.png': b'b' * 9, 'c.json': b'{}'}).read_bytes())
    )
    with suppress(TPAError), Sources([path], Limits(1, 1)) as sources:
        for member in [*sources.files(r'(val/\w+\.\w+)').values(), sources.one('c.json')]:
            if member is not None:
                assert len(member.read()) <= 2**20
