"""Every result is set beside the right number of the paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from tests.reproduce.test_results import RESULT, VARIANT
from tpa_mmseg.reproduce import plan
from tpa_mmseg.reproduce.folders import RunFolder, RunView, State
from tpa_mmseg.reproduce.frames import Reference, cells, cost, reference, verdicts
from tpa_mmseg.reproduce.results import Scores
from tpa_mmseg.reproduce.sources import Source


def run(experiment: str, name: str):
    return next(run for run in plan(experiment) if run.name == name)


def costs(suite: str, name: str) -> pd.Series:
    """The paper's milliseconds of some steps of a run."""
    views = [view for view in Source(Path('runs')).views(suite, ['cost']) if view.run.name == name]
    return cost(views, {step: step for step in ('clip', 'encoder', 'lookup')}).set_index('step').paper


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
        ('bank-size', 'trident_vit-b16_voc21', 'share-0.5', Reference(67.1, None, None)),
        ('overlap', 'naclip_vit-b16_voc21', 'high', Reference()),
    ],
)
def test_reference_is_the_number_that_the_paper_prints(experiment, name, variant, expected) -> None:
    assert reference(run(experiment, name), variant) == expected


def test_miniature_world_has_no_reference() -> None:
    assert reference(plan('main', 'miniature')[0]) == Reference()
    assert costs('miniature', 'proxyclip_mini-b8_miniature').isna().all()


def test_costs_are_those_of_the_backbone() -> None:
    assert costs('paper', 'proxyclip_vit-l14_voc21').to_dict() == {'clip': 13.0, 'encoder': 8.0, 'lookup': 0.4}


def view(base: float, tpa: float) -> RunView:
    """A result of SCLIP B/16 on VOC21, for which the paper has 59.1 and 61.1."""
    found = run('main', 'sclip_vit-b16_voc21')
    scores = {'tpa': Scores(0, tpa, 0), 'gain': Scores(0, round(tpa - base, 2), 0)}
    result = replace(RESULT, host=Scores(0, base, 0), variants=(replace(VARIANT, **scores),))
    return RunView(found, RunFolder.of(found, Path('runs')), State.DONE, result)


def test_comparison_takes_base_tpa_and_gain() -> None:
    found = cells([view(60.0, 63.0)])
    assert found.set_index('quantity')[['ours', 'paper']].to_dict('index') == {
        'base': {'ours': 60.0, 'paper': 59.1},
        'tpa': {'ours': 63.0, 'paper': 61.1},
        'gain': {'ours': 3.0, 'paper': 2.0},
    }


@pytest.mark.parametrize('ours, near', [(60.6, True), (60.61, False), (57.6, True), (57.59, False)])
def test_tolerance_is_one_and_a_half_points_both_ways(ours: float, near: bool) -> None:
    found = cells([view(ours, 61.1)]).set_index('quantity')
    assert found.outside['base'] == (not near)


@pytest.mark.parametrize(
    ('scores', 'expected'),
    [({}, 'not run'), ({'voc21': 60.0}, 'incomplete'), ({'voc21': 64.0}, 'differs')],
)
def test_row_of_the_paper_agrees_only_when_all_of_it_has_run(scores: dict, expected: str) -> None:
    views = []
    for found in plan('main', hosts=['sclip'], backbones=['vit-b16']):
        base = scores.get(found.benchmark)
        result = None if base is None else replace(RESULT, host=Scores(0, base, 0), variants=())
        views.append(RunView(found, RunFolder.of(found, Path('runs')), State.DONE, result))
    assert verdicts(cells(views)).set_index('title').verdict[''] == expected


def test_row_agrees_when_all_its_numbers_are_near() -> None:
    views = []
    for found in plan('main', hosts=['sclip'], backbones=['vit-b16']):
        result = replace(RESULT, host=Scores(0, reference(found).base + 0.3, 0), variants=())
        views.append(RunView(found, RunFolder.of(found, Path('runs')), State.DONE, result))
    assert verdicts(cells(views)).set_index('title').verdict.to_dict() == {'': 'agrees', 'TPA': 'not run'}
