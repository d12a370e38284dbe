"""The benchmark compares like with like, measures what it says, and writes the keys that docs/performance.md names."""

from __future__ import annotations

import json
from functools import partial

import numpy
import pytest
import torch
from torch.testing import assert_close
from tpa_tools import benchmark
from tpa_tools.benchmarking import core_cases
from tpa_tools.benchmarking.measure import Case, measure
from tpa_tools.benchmarking.report import ratio_table, table

from tpa_mmseg.console import render


@pytest.fixture
def inputs():
    return core_cases.make_inputs(core_cases.TINY)


def test_both_ways_of_lookup_and_fusion_give_the_same_labels(inputs):
    assert torch.equal(core_cases.tpa_labels(inputs), core_cases.direct_tpa_labels(inputs))


def test_both_ways_of_a_bank_update_give_the_same_sums(inputs):
    ours = core_cases.bank_update(inputs)
    assert_close(ours, core_cases.direct_bank_update(inputs), atol=1e-4, rtol=1e-5)
    assert ours.any()


def test_decoding_gives_the_plain_labels_and_those_of_tpa(inputs):
    host, tpa = core_cases.both_labels(inputs)
    assert torch.equal(host, core_cases.plain_labels(inputs))
    assert torch.equal(tpa, core_cases.tpa_labels(inputs))


def test_peak_memory_is_what_a_computation_takes_above_its_inputs():
    elements = partial(int, 6 << 20)
    case = Case(
        'ones',
        'ones',
        'ones of half the width',
        '',
        inputs=elements,
        warm_inputs=partial(int, 1),
        ours=numpy.ones,
        other=partial(numpy.ones, dtype=numpy.float32),
        times_faster=0.0,
        memory_mb=60,
        memory_ratio=1.5,
    )
    entry = measure(case, repeats=1)
    assert entry['peak_mb']['ours'] == pytest.approx(48, abs=3)
    assert entry['peak_mb']['other'] == pytest.approx(24, abs=3)
    assert entry['met'] == {'times_faster': True, 'memory_ratio': False, 'memory_mb': True}
    assert '<= 1/0.666667, <= 60 MB | NO' in render(*ratio_table([entry]))
    assert table([entry]) == ratio_table([entry])


def test_cases_with_stages_take_one_line_that_names_the_targets_they_miss():
    entry = {
        'title': 'SCLIP',
        'setting': 'C = 171',
        'seconds': {'ours': 2.0, 'other': 3.0},
        'stages': {'network': 1.9, 'decoding': 0.1},
        'peak_mb': {'ours': 40.0, 'other': 100.0},
        'times_faster': 1.5,
        'memory_ratio': 0.4,
        'met': {'times_faster': True, 'memory_ratio': False},
    }
    line = render(*table([entry]), markdown=True).splitlines()[-1]
    cells = [cell.strip() for cell in line.strip('|').split('|')]
    assert cells[:7] == ['SCLIP', 'C = 171', '3.00 s', '2.00 s', '1.50 x', '1.90 s', '100 ms']
    assert cells[7:] == ['100 MB', '40 MB', '0.40', 'memory missed']


def test_the_tool_writes_the_documented_keys(tmp_path, capsys):
    file = tmp_path / 'report.json'
    benchmark.main(['--quick', '--json', str(file)])

    report = json.loads(file.read_text())
    assert set(report) == {'suite', 'quick', 'machine', 'cases'}
    assert set(report['machine']) == {'cpu', 'cores', 'load', 'threads', 'torch', 'python', 'clock'}
    names = [case['name'] for case in report['cases']]
    decoding = [f'decode_{name}' for name in ('coco_stuff', 'ade20k', 'voc', '1000', '3000')]
    assert names == ['lookup_fusion', 'bank_update', *decoding, 'consistent_coco_stuff', 'consistent_voc']
    for case in report['cases']:
        assert set(case) == {
            *('name', 'title', 'against', 'setting', 'seconds', 'repetitions', 'stages', 'peak_mb'),
            *('times_faster', 'memory_ratio', 'targets', 'met'),
        }
        assert case['times_faster'] == pytest.approx(case['seconds']['other'] / case['seconds']['ours'])
    table = capsys.readouterr().out
    assert table.count('x faster') == table.count(': peak memory') == len(names)
