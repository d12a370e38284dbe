"""The benchmark of a GPU, rehearsed on a CPU with tiny networks, and that of half precision."""

from __future__ import annotations

import json

import pytest
import torch
from tpa_tools import benchmark
from tpa_tools.benchmarking.launches import count_calls

from tpa_mmseg.catalog import paper

# Some virtual machines announce matrix instructions for bfloat16 that they cannot execute; oneDNN would use them.
pytestmark = pytest.mark.usefixtures('without_onednn')
STAGES = {'clip', 'host', 'encoder', 'bank_encoder_pass', 'bank_update', 'lookup', 'decode'}


@pytest.fixture
def without_onednn():
    with torch.backends.mkldnn.flags(enabled=False):
        yield


def test_the_tool_writes_a_report_to_send_and_a_table(tmp_path, capsys):
    file = tmp_path / 'gpu.json'
    hosts = ('SCLIP', 'Trident', 'ProxyCLIP, HostFeatures')
    options = ('--precision', 'auto', 'bfloat16', '--device', 'cpu', '--workers', '0', '--batch-size', '2')
    benchmark.main(['gpu', '--quick', '--hosts', *hosts, *options, '--json', str(file)])
    report = json.loads(file.read_text())
    assert set(report) == {'suite', 'quick', 'machine', 'options', 'paper', 'hosts'}
    assert report['machine']['gpu'] is None and report['paper'] == paper.costs('vit-b16')
    assert [(entry['host'], entry['precision']) for entry in report['hosts']] == [
        (host, precision) for host in hosts for precision in ('auto', 'bfloat16')
    ]
    for entry in report['hosts']:
        used = 'float32' if entry['precision'] == 'auto' else 'bfloat16'
        assert entry['used'] == {'clip': used, 'encoder': used}
        assert entry['stages'].keys() == STAGES
        assert all(stage['milliseconds'] > 0 and stage['launches'] is None for stage in entry['stages'].values())
        assert entry['images_per_second'] > 0 and entry['weights_mb'] > 0 and entry['peak_mb'] is None
    table = file.with_suffix('.md').read_text()
    assert '| The paper, A100' in table and 'a rehearsal on a CPU' in table
    assert table.strip() in capsys.readouterr().out


def test_an_unknown_host_is_answered_with_the_known_ones(tmp_path, capsys):
    with pytest.raises(SystemExit):
        benchmark.main(['gpu', '--hosts', 'SLIP', '--json', str(tmp_path / 'gpu.json')])
    assert '--hosts must be one of CLIP, MaskCLIP, SCLIP' in capsys.readouterr().err


def test_launches_and_waits_are_told_apart_from_other_calls():
    calls = {'cudaLaunchKernel': 7, 'cudaLaunchKernelExC': 2, 'cuLaunchKernel': 1, 'cudaMemcpyAsync': 4, 'aten::mm': 9}
    waits = {'cudaStreamSynchronize': 3, 'cudaDeviceSynchronize': 1}
    assert count_calls({**calls, **waits}) == {'launches': 10, 'synchronizations': 3}


def test_half_precision_is_compared_with_float32(tmp_path, capsys):
    file = tmp_path / 'precision.json'
    benchmark.main(['precision', '--quick', '--hosts', 'sclip', '--markdown', '--json', str(file)])
    entries = json.loads(file.read_text())['hosts']
    assert [entry['precision'] for entry in entries] == ['float32', 'float16', 'bfloat16']
    changed = [entry['changed_labels']['tpa'] for entry in entries]
    assert changed[0] == 0 < changed[2] < 0.05 and changed[1] < 0.01
    assert capsys.readouterr().out.count('| sclip') == 2
