"""The plan is that of the paper, and every run has its config."""

from __future__ import annotations

import pytest

from tpa_mmseg.catalog import paper
from tpa_mmseg.core import Fusion
from tpa_mmseg.errors import TPAError
from tpa_mmseg.reproduce import EXPERIMENTS, plan, suite_of
from tpa_mmseg.reproduce.experiments import planned_images
from tpa_mmseg.reproduce.labels import TIMES
from tpa_mmseg.reproduce.runs import FULL
from tpa_mmseg.reproduce.suite import SUITES

COUNTS = {
    'main': 88,
    'vfm': 72,
    'components': 3,
    'k': 3,
    'sensitivity': 3,
    'extractor': 8,
    'composition': 30,
    'bank-size': 8,
    'repetition': 8,
    'overlap': 3,
    'consistency': 15,
    'cost': 24,
    'pictures': 20,
    'anchors': 8,
}


def test_experiments_have_the_runs_of_the_paper() -> None:
    assert {name: len(plan(name)) for name in EXPERIMENTS} == COUNTS


@pytest.mark.parametrize('suite', SUITES)
def test_every_run_has_its_config_and_a_folder_of_its_own(suite: str) -> None:
    for name in EXPERIMENTS:
        runs = plan(name, suite, comparisons=True)
        assert runs
        assert len({run.name for run in runs}) == len(runs)
        missing = [run.name for run in runs if not suite_of(suite).config(run).is_file()]
        assert missing == []


@pytest.mark.parametrize('suite', SUITES)
def test_settings_of_a_run_have_different_keys(suite: str) -> None:
    for name in EXPERIMENTS:
        for run in plan(name, suite):
            keys = [setting.key for setting in run.settings]
            assert len(set(keys)) == len(keys)


def test_main_table_has_the_eleven_rows_of_the_paper() -> None:
    rows = [str(row) for row in dict.fromkeys(run.row for run in plan('main'))]
    printed = [row['key'] for row in paper.tables()['tables']['main'] if row['key'].endswith('+tpa')]
    assert rows == [key.removesuffix('+tpa') for key in printed] and len(rows) == 11
    assert 'trident_vit-h14' in rows and 'trident_vit-l14' not in rows


@pytest.mark.parametrize('experiment, rows', [('main', 11), ('vfm', 9)])
def test_every_row_that_the_paper_compares_with_is_planned_on_demand(experiment: str, rows: int) -> None:
    planned = {str(run.row) for run in plan(experiment, comparisons=True)}
    printed = {row['key'] for row in paper.tables()['tables'][experiment] if not row['key'].endswith('+tpa')}
    assert planned == printed
    others = [run for run in plan(experiment, comparisons=True) if run not in plan(experiment)]
    assert len(others) == 8 * rows and all(run.settings == () for run in others)
    assert all(str(run.row) not in printed or run.row.variant for run in others)


def test_banks_of_all_benchmarks_grow_to_all_test_images() -> None:
    runs = plan('bank-size')
    assert {str(run.row) for run in runs} == {'trident_vit-b16'}
    assert [run.benchmark for run in runs] == list(suite_of('paper').benchmarks)
    shares = [setting.fraction for setting in runs[0].settings]
    assert shares == [0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, None]
    assert runs[0].settings[-1].key == 'full'  # the usual pool of 100 images


def test_pictures_are_of_five_hosts_on_four_benchmarks_and_all_their_images() -> None:
    runs = plan('pictures')
    assert [host for host in dict.fromkeys(run.row.host for run in runs)] == [
        'sclip', 'clearclip', 'naclip', 'proxyclip', 'trident'
    ]  # fmt: skip
    assert {run.row.backbone for run in runs} == {'vit-b16'}
    assert {run.benchmark for run in runs} == {'voc21', 'coco_object', 'cityscapes', 'ade20k'}
    assert [planned_images(run) for run in runs[:4]] == [1449, 5000, 500, 2000]


def test_anchors_are_shown_in_proxyclip_on_every_benchmark() -> None:
    assert {str(run.row) for run in plan('anchors')} == {'proxyclip_vit-b16'}
    assert [run.benchmark for run in plan('anchors')] == list(suite_of('paper').benchmarks)


def test_costs_are_measured_with_every_backbone_on_every_benchmark() -> None:
    assert {run.row.backbone for run in plan('cost')} == {'vit-b16', 'vit-l14', 'vit-h14'}
    assert {run.benchmark for run in plan('cost')} == set(suite_of('paper').benchmarks)


def test_filters_leave_what_they_name() -> None:
    runs = plan('main', hosts=['naclip'], backbones=['vit-b16'], benchmarks=['voc21', 'ade20k'])
    assert [run.name for run in runs] == ['naclip_vit-b16_voc21', 'naclip_vit-b16_ade20k']


def test_composition_leaves_out_what_the_protocol_has_not() -> None:
    assert 'ade20k' not in {run.benchmark for run in plan('composition') if run.row.variant.startswith('224')}
    assert {run.row.variant for run in plan('composition')} == {'', 'fsa', '224', '224-mlmp'}


@pytest.mark.parametrize(
    'arguments, expected',
    [
        ({'experiment': 'everything'}, "Unknown experiment 'everything'"),
        ({'experiment': 'main', 'suite': 'moon'}, "Unknown suite 'moon'"),
        ({'experiment': 'main', 'benchmarks': ['voc']}, '--dataset voc'),
        ({'experiment': 'main', 'hosts': ['nobody']}, '--host nobody'),
    ],
)
def test_what_is_unknown_is_named(arguments: dict, expected: str) -> None:
    with pytest.raises(TPAError, match=expected):
        plan(**arguments)


def test_numbers_of_images_are_known_for_all_benchmarks() -> None:
    assert suite_of('paper').images == {
        'voc21': 1449,
        'voc20': 1449,
        'context60': 5104,
        'context59': 5104,
        'coco_object': 5000,
        'coco_stuff164k': 5000,
        'cityscapes': 500,
        'ade20k': 2000,
    }
    assert list(suite_of('paper').benchmarks) == list(suite_of('paper').images)


def test_sensitivity_varies_one_thing_at_a_time_and_has_the_default_of_each() -> None:
    settings = plan('sensitivity')[0].settings
    for setting in settings:
        changed = setting.fusion, setting.anchors, setting.pool_seed is not None or None
        assert sum(bool(part) for part in changed) == 1, setting
    values = {axis: [one.value for one in settings if one.axis == axis] for axis in ('alpha', 'lambda')}
    assert Fusion().alpha in values['alpha'] and Fusion().lambda_ in values['lambda']


@pytest.mark.parametrize('experiment, benchmarks', [('components', 3), ('k', 3), ('extractor', 8)])
def test_ablations_score_the_rows_that_the_paper_prints(experiment: str, benchmarks: int) -> None:
    printed = paper.tables()['ablations'][experiment]
    runs = plan(experiment)
    assert {str(run.row) for run in runs} == {printed['row']} == {'naclip_vit-b16'}
    assert {tuple(setting.key for setting in run.settings) for run in runs} == {
        tuple(row['key'] for row in printed['rows'])
    }
    for row in printed['rows']:
        assert set(row['gains']) == {run.benchmark for run in runs} and len(runs) == benchmarks


@pytest.mark.parametrize('experiment', ['main', 'vfm', 'composition'])
def test_every_number_of_the_tables_of_hosts_has_its_run(experiment: str) -> None:
    planned = {(run.name, setting) for run in plan(experiment, comparisons=True) for setting in (False, *run.settings)}
    for row in paper.tables()['tables'][experiment]:
        host, tpa = row['key'].removesuffix('+tpa'), row['key'].endswith('+tpa')
        for benchmark, score in row['scores'].items():
            assert score is None or (f'{host}_{benchmark}', FULL if tpa else False) in planned, (row['key'], benchmark)


def test_overlap_has_three_pools_of_one_size_and_half_of_the_test_images() -> None:
    runs = plan('overlap')
    assert [run.name for run in runs] == ['naclip_vit-b16_voc21', 'naclip_vit-b16_context59', 'naclip_vit-b16_ade20k']
    assert [setting.key for setting in runs[0].settings] == ['high', 'random', 'low']
    assert [planned_images(run) for run in runs] == [725, 2552, 1000]


def test_repetition_is_counted_on_every_benchmark_and_needs_no_setting_of_tpa() -> None:
    assert [run.benchmark for run in plan('repetition')] == list(suite_of('paper').benchmarks)
    assert all(run.settings == () and planned_images(run) for run in plan('repetition'))
    assert TIMES == (1, 2, 5, 10)


@pytest.mark.parametrize('suite', SUITES)
def test_runs_that_are_shown_class_by_class_are_of_the_main_table(suite: str) -> None:
    shown = suite_of(suite).classes
    assert len(shown) == len(set(shown)) == 3
    assert set(shown) <= {run.name for run in plan('main', suite)}


def test_consistency_is_looked_at_with_every_host_and_its_first_backbone() -> None:
    rows = list(dict.fromkeys(str(run.row) for run in plan('consistency')))
    assert rows == [f'{host}_vit-b16' for host in ('sclip', 'clearclip', 'naclip', 'proxyclip', 'trident')]
    hosts = [[run.row.host for run in plan(name, 'miniature')] for name in ('consistency', 'main')]
    assert list(dict.fromkeys(hosts[0])) == list(dict.fromkeys(hosts[1]))


def test_classes_sorted_by_their_base_are_of_the_host_whose_banks_grow() -> None:
    names = {run.name for run in plan('main')}
    assert all(f'trident_vit-b16_{name}' in names for name in suite_of('paper').benchmarks)
    assert str(suite_of('paper').growth) == 'trident_vit-b16'
