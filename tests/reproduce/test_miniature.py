"""Every experiment of the miniature world runs, and the report has the numbers of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.world import run_in_process
from tpa_mmseg.launch.execute import execute
from tpa_mmseg.reproduce import EXPERIMENTS, State, collect, plan
from tpa_mmseg.reproduce.report import write_report
from tpa_mmseg.reproduce.report.build import build_report
from tpa_mmseg.reproduce.report.document import Section
from tpa_mmseg.reproduce.run import RunTask

OPTIONS = {'test_dataloader.dataset.size': 4, 'custom_hooks.0.pool.size': 2}
#: What is enough of the experiments that have many runs.
PARTS = {
    'main': {'hosts': ('naclip',), 'backbones': ('mini-b8',)},
    'composition': {'backbones': ('mini-b8',)},
    'repetition': {'benchmarks': ('miniature',)},
    'cost': {'backbones': ('mini-b8',)},
}
FIGURES = ('classes', 'k', 'bank-size', 'repetition', 'overlap')


@pytest.fixture(scope='module')
def work_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of runs after all experiments."""
    folder = tmp_path_factory.mktemp('runs')
    for name in EXPERIMENTS:
        for run in plan(name, 'miniature', **PARTS.get(name, {})):
            execute(RunTask(run, folder, OPTIONS))
    return folder


def numbers(section: Section) -> list[float]:
    cells = [cell for table in section.tables for row in table.rows for cell in row[table.labels :]]
    return [cell.value for cell in cells if isinstance(cell.value, int | float)]


@pytest.mark.slow
def test_every_experiment_has_its_numbers_in_the_report(work_dir: Path) -> None:
    (part,) = build_report(work_dir, ['miniature']).parts
    assert [section.name for section in part.sections] == ['main', 'classes', *list(EXPERIMENTS)[1:]]
    for section in part.sections:
        assert section.states[State.DONE] and not section.failures, section
        assert section.albums if section.name == 'pictures' else numbers(section), section.name
        assert bool(section.figures) == (section.name in FIGURES), section.name
        assert 'Not made with the number of images that is planned' in section.notes[0], section.name


@pytest.mark.slow
def test_report_of_every_experiment_can_be_written(work_dir: Path) -> None:
    page, *others = write_report(work_dir / 'report', work_dir, ['miniature'])
    assert page.stat().st_size > 10_000
    assert {path.suffix for path in others} == {'.md', '.csv', '.tex', '.svg'}


@pytest.mark.slow
def test_costs_are_measured_step_by_step(work_dir: Path) -> None:
    (view,) = (view for view in collect('miniature', work_dir, ['cost']) if view.state is State.DONE)
    cost = view.result.cost
    assert all(0 < timing.low <= timing.median <= timing.high for timing in cost.columns.values())
    assert cost.columns['total'].median >= cost.columns['host'].median
    assert cost.image_sizes[0] <= cost.image_size <= cost.image_sizes[1]
    assert cost.cache_mb_range[0] <= cost.cache_mb_per_image <= cost.cache_mb_range[1]


@pytest.mark.slow
def test_costs_are_measured_when_nothing_else_of_the_command_runs(tmp_path: Path) -> None:
    settings = [f'{key}={value}' for key, value in OPTIONS.items()]
    options = '--suite', 'miniature', '--backbone', 'mini-b8', '--processes', '2', '--work-dir', tmp_path
    run_in_process('reproduce', 'run', 'cost', 'k', *options, '--cfg-options', *settings)
    cost, k = (view for view in collect('miniature', tmp_path, ['cost', 'k']) if view.state is State.DONE)
    # The config is the first file that a run writes.
    assert cost.folder.config.stat().st_mtime >= k.folder.results.stat().st_mtime
    for one in (cost, k):
        text = one.folder.log.read_text(encoding='utf-8')
        assert text.endswith('done\n') and 'Logging error' not in text and 'Traceback' not in text, text
