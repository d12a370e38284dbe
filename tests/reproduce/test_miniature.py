"""Every experiment of the miniature world runs, and the report has the numbers of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpa_mmseg.launch.execute import execute
from tpa_mmseg.reproduce import EXPERIMENTS, Source, State, plan
from tpa_mmseg.reproduce.report import write_report
from tpa_mmseg.reproduce.report.build import build_report
from tpa_mmseg.reproduce.report.section import Section
from tpa_mmseg.reproduce.report.tables import Cell
from tpa_mmseg.reproduce.run import RunTask

OPTIONS = {'test_dataloader.dataset.size': 4, 'custom_hooks.0.pool.size': 2}
#: What is enough of the experiments that have many runs.
PARTS = {
    'main': {'hosts': ('naclip',), 'backbones': ('mini-b8',)},
    'composition': {'backbones': ('mini-b8',)},
    'repetition': {'benchmarks': ('miniature',)},
    'consistency': {'hosts': ('naclip',), 'backbones': ('mini-b8',), 'benchmarks': ('miniature',)},
    'cost': {'backbones': ('mini-b8',)},
    'pictures': {'hosts': ('naclip',)},
    'bank-size': {'benchmarks': ('miniature',)},
}
FIGURES = ('classes', 'k', 'sensitivity', 'bank-size', 'repetition', 'overlap', 'consistency', 'cost')


@pytest.fixture(scope='module')
def work_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of runs after all experiments."""
    folder = tmp_path_factory.mktemp('runs')
    for name in EXPERIMENTS:
        # The last one has the variant where there are several.
        execute(RunTask(plan(name, 'miniature', **PARTS.get(name, {}))[-1], folder, OPTIONS))
    return folder


def numbers(section: Section) -> list[float]:
    cells = [cell for table in section.tables for cell in table.frame.to_numpy().flatten()]
    values = [cell.ours if isinstance(cell, Cell) else cell for cell in cells]
    return [value for value in values if isinstance(value, int | float) and value == value]


@pytest.mark.slow
def test_every_experiment_has_its_numbers_in_the_report(work_dir: Path) -> None:
    (part,) = build_report(Source(work_dir), ['miniature'], 1.5)
    assert [section.name for section in part.sections] == ['claims', 'main', 'classes', *list(EXPERIMENTS)[1:]]
    for section in part.sections:
        assert section.started and not section.failures, section
        assert section.albums if section.name in ('pictures', 'anchors') else numbers(section), section.name
        assert bool(section.figures) == (section.name in FIGURES), section.name
        if section.name != 'claims':
            assert 'Not made with the number of images that is planned' in section.notes[0], section.name


@pytest.mark.slow
def test_report_of_every_experiment_can_be_written(work_dir: Path) -> None:
    page, *others = write_report(Source(work_dir), work_dir / 'report', ['miniature'], formats=('svg',))
    assert 900_000 < page.stat().st_size < 10_000_000
    assert {path.suffix for path in others} == {'.md', '.csv', '.tex', '.svg'}


@pytest.mark.slow
def test_results_say_what_they_were_made_with(work_dir: Path) -> None:
    for view in Source(work_dir).views('miniature', ['sensitivity', 'k']):
        origin = view.result.provenance
        assert {'host', 'encoder'} <= set(origin.weights) and origin.data and origin.seeds['pool'] == 0
        assert set(origin.banks) == {setting.key for setting in view.run.settings}
        assert 'TPASegmentor' in origin.config and origin.precision
    sensitivity = next(iter(Source(work_dir).views('miniature', ['sensitivity']))).result.provenance.banks
    assert sensitivity['alpha-0'] == sensitivity['lambda-20'] == sensitivity['seed-0'] != sensitivity['seed-4']


@pytest.mark.slow
def test_costs_are_measured_step_by_step(work_dir: Path) -> None:
    (view,) = (view for view in Source(work_dir).views('miniature', ['cost']) if view.state is State.DONE)
    cost = view.result.cost
    assert all(0 < timing.low <= timing.median <= timing.high for timing in cost.columns.values())
    assert cost.columns['total'].median >= cost.columns['host'].median
    assert cost.image_sizes[0] <= cost.image_size <= cost.image_sizes[1]
    assert cost.cache_mb_range[0] <= cost.cache_mb_per_image <= cost.cache_mb_range[1]
