"""Every result is set beside the right number of the paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.reproduce.test_results import RESULT, VARIANT
from tpa_mmseg.reproduce import plan
from tpa_mmseg.reproduce.reference import Comparison, Reference, compare, cost_reference, reference
from tpa_mmseg.reproduce.results import Scores


def run(experiment: str, name: str):
    return next(run for run in plan(experiment) if run.name == name)


@pytest.mark.parametrize(
    'experiment, name, variant, expected',
    [
        ('main', 'sclip_vit-b16_voc21', 'full', Reference(59.1, 61.1, 2.0)),
        ('vfm', 'proxyclip-sam_vit-b16_voc21', 'full', Reference(59.3, 61.3, 2.0)),
        ('components', 'naclip_vit-b16_voc21', 'no-centering', Reference(64.1, None, 1.3)),
        ('components', 'naclip_vit-b16_ade20k', 'full', Reference(19.1, None, 2.9)),
        ('k', 'naclip_vit-b16_voc21', 'k-2.5', Reference(64.1, None, 2.39)),
        ('extractor', 'naclip_vit-b16_cityscapes', 'mae', Reference(38.3, None, 2.6)),
        ('composition', 'proxyclip-fsa_vit-b16_voc21', 'full', Reference(63.7, 65.4, 1.7)),
        ('composition', 'naclip-224-mlmp_vit-l14_voc20', 'full', Reference(83.8, 86.5, 2.7)),
        ('bank-size', 'trident_vit-b16_voc21', 'pool-0.5', Reference(67.1, None, None)),
        ('overlap', 'naclip_vit-b16_voc21', 'high', Reference()),
    ],
)
def test_reference_is_the_number_that_the_paper_prints(experiment, name, variant, expected) -> None:
    assert reference(run(experiment, name), variant) == expected


def test_miniature_world_has_no_reference() -> None:
    assert reference(plan('main', 'miniature')[0]) == Reference()
    assert cost_reference(plan('cost', 'miniature')[0]) == {}


def test_costs_are_those_of_the_backbone() -> None:
    costs = cost_reference(run('cost', 'proxyclip_vit-l14_voc21'))
    assert (costs['clip'], costs['encoder'], costs['lookup']) == (13.0, 8.0, 0.4)


def test_comparison_takes_base_tpa_and_gain() -> None:
    result = replace(RESULT, host=Scores(0, 60.0, 0), variants=(replace(VARIANT, tpa=Scores(0, 63.0, 0)),))
    found = {c.quantity: (c.ours, c.paper) for c in compare(run('main', 'sclip_vit-b16_voc21'), result)}
    assert found == {'base': (60.0, 59.1), 'tpa': (63.0, 61.1), 'gain': (2.0, 2.0)}


@pytest.mark.parametrize('ours, near', [(60.6, True), (60.61, False), (57.6, True), (57.59, False)])
def test_tolerance_is_one_and_a_half_points_both_ways(ours: float, near: bool) -> None:
    assert Comparison(plan('main')[0], None, 'base', ours, 59.1).within() is near
