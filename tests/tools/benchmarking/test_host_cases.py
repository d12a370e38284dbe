"""The two ways to run a host that the benchmark compares give the same labels."""

from __future__ import annotations

import time

import pytest
import torch
from tpa_tools.benchmarking import host_cases


@pytest.mark.parametrize('vocabulary', host_cases.VOCABULARIES[:2], ids=str)
@pytest.mark.parametrize('name', host_cases.HOSTS)
def test_both_ways_give_the_same_labels(name, vocabulary):
    inputs = host_cases.make_inputs(name, vocabulary, tiny=True)
    ours, other = host_cases.our_labels(inputs), host_cases.other_labels(inputs)
    assert ours.shape == (70, 105)
    assert ours.unique().numel() > 1
    assert (ours != other).float().mean() < 1e-3


@pytest.mark.parametrize('name', ['SCLIP', 'Trident'])
def test_the_stages_of_an_image_are_timed(name):
    inputs = host_cases.make_inputs(name, host_cases.VOCABULARIES[0], tiny=True)
    assert set(host_cases.stages(inputs, 1, time.process_time)) == {'network', 'stitching', 'decoding', 'TPA'}


def test_every_host_is_measured_with_synonyms_few_and_many_classes():
    cases = host_cases.host_cases(quick=True)
    assert len(cases) == 3 * len(host_cases.HOSTS)
    assert {case.times_faster for case in cases} == {1.0, 1.3}
    assert torch.is_tensor(cases[0].ours(cases[0].inputs()))
