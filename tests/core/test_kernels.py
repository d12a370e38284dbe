"""The kernels label like the path without them, and compile for every GPU that users have. No GPU is needed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import torch

from tests.helpers.world import ROOT, environment
from tpa_mmseg.core import QueryScores, fused

triton = pytest.importorskip('triton', reason='Triton is not installed: the path without kernels is used')

TARGETS = (80, 86, 90, 100)
CASES = 16
_TILE = {'ROWS': fused._TILE[0], 'COLUMNS': fused._TILE[1]}
_FLAGS = {'HOST': True, 'ADDED': True, 'TOTALS': True, 'MASS': True}
#: What a kernel is compiled with: as on VOC21 with windows, its second pass, full-size scores, and a bank update.
KERNELS = {
    'decode': ('decode_kernel', {'K': 6, 'L': 2, **_FLAGS, 'STRUCK': False, **_TILE}),
    'decode again': (
        'decode_kernel',
        {'K': 6, 'L': 2, **_FLAGS, 'TOTALS': False, 'MASS': False, 'STRUCK': True, **_TILE},
    ),
    'anchors': ('anchor_kernel', {'K': 6, **_TILE}),
}


def test_kernels_label_random_images_like_the_path_without_them():
    command = [sys.executable, '-m', 'tests.core.kernel_cases', str(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f'{CASES} cases equal\n'


def type_of(name: str) -> str:
    """Type of an argument of a kernel, as Triton writes it."""
    if name in ('num_classes', 'height', 'width', 'score_rows', 'cosine_rows', 'grid_rows', 'grid_columns'):
        return 'i32'
    if name == 'tau':
        return 'fp32'
    if name in ('row_weight', 'column_weight', 'weights'):
        return '*fp64'
    if name.endswith('index') or name in ('starts', 'covered', 'counts'):
        return '*i32'
    return {'struck': '*i8', 'label': '*u8'}.get(name.rpartition('_')[2], '*fp32')


@pytest.mark.parametrize('name', KERNELS)
@pytest.mark.parametrize('target', TARGETS)
def test_kernels_compile_and_spill_no_register(target, name, tmp_path):
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from tpa_mmseg.core import kernels

    function, constants = KERNELS[name]
    kernel = getattr(kernels, function)
    types = {arg: 'constexpr' if arg in constants else type_of(arg) for arg in kernel.arg_names}
    try:
        compiled = triton.compile(ASTSource(kernel, types, constants), target=GPUTarget('cuda', target, 32))
    except (RuntimeError, ValueError) as error:
        pytest.skip(f'this Triton cannot compile for sm_{target}: {error}')
    code = tmp_path / 'kernel.ptx'
    code.write_text(compiled.asm['ptx'])
    architecture = re.search(r'\.target (\w+)', compiled.asm['ptx'])[1]
    tool = (knobs.nvidia.ptxas_blackwell if target >= 100 else knobs.nvidia.ptxas).path
    command = [tool, '-v', f'--gpu-name={architecture}', str(code), '-o', str(tmp_path / 'kernel.cubin')]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert '0 bytes spill stores, 0 bytes spill loads' in report, report
    assert int(re.search(r'Used (\d+) registers', report)[1]) <= 128, report


def test_kernels_are_for_gpus_and_can_be_switched_off(monkeypatch):
    monkeypatch.delenv('TRITON_INTERPRET', raising=False)
    assert fused.usable(torch.device('cuda')) and not fused.usable(torch.device('cpu'))
    monkeypatch.setenv('TPA_KERNELS', '0')
    assert not fused.usable(torch.device('cuda'))


@pytest.mark.parametrize(
    'scores', [QueryScores(torch.randn(3, 4, 4), (8, 8), [1, 0, 2]), QueryScores(torch.randn(3, 4, 4), (8, 8))]
)
def test_without_a_gpu_nothing_is_read_by_kernels(scores):
    assert fused.FusedReader.of(scores, [None]) is None
