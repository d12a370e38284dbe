"""A process executes its run: a failure says why, and nothing is done twice."""

from __future__ import annotations

import pickle
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.reproduce.demo_suite import ROW, demo_suite, use
from tpa_mmseg.launch.execute import execute
from tpa_mmseg.reproduce import EXPERIMENTS, State, plan
from tpa_mmseg.reproduce.folders import RunView, view
from tpa_mmseg.reproduce.run import RunTask
from tpa_mmseg.reproduce.suite import Suite


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Two runs of which the second's data are not there."""
    sound = demo_suite(tmp_path, count=3, pool=2)
    text = sound.config(None).read_text(encoding='utf-8')
    broken = tmp_path / 'broken.py'
    broken.write_text(text.replace(str(tmp_path / 'scenes'), str(tmp_path / 'gone')), encoding='utf-8')
    configs = {'dusk': broken, 'dawn': sound.config(None)}
    return use(replace(sound, config=lambda run: configs[run.benchmark]), monkeypatch)


def run(folder: Path, benchmark: str = 'dawn', experiment: str = 'main', **options) -> RunView:
    """Executes a run of the suite. Returns it as it stands afterward."""
    (found,) = plan(experiment, 'demo', benchmarks=[benchmark])
    task = RunTask(found, folder / 'runs', options)
    execute(task)
    return view(found, task.work_dir)


def test_failure_says_why_and_is_forgotten_by_the_next_attempt(
    suite: Suite, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    found = run(tmp_path, 'dusk')
    assert found.state is State.FAILED
    assert f'Data not found: {tmp_path / "gone"}. Check the path' in found.error
    assert 'TPAError' in capsys.readouterr().err
    (tmp_path / 'scenes').rename(tmp_path / 'gone')
    assert run(tmp_path, 'dusk').state is State.DONE


def test_finished_run_keeps_its_config_and_is_not_run_again(suite: Suite, tmp_path: Path) -> None:
    found = run(tmp_path)
    assert (found.state, found.result.images, found.result.variant('full').bank.images) == (State.DONE, 3, 2)
    assert 'TPASegmentor' in found.folder.config.read_text(encoding='utf-8')
    assert (found.folder.progress().done, found.folder.progress().total) == (3, 3)
    written = found.folder.results.stat().st_mtime_ns
    assert run(tmp_path).folder.results.stat().st_mtime_ns == written
    found.folder.results.write_text('{', encoding='utf-8')
    assert run(tmp_path).state is State.DONE


def test_run_of_another_process_is_left_to_it(
    suite: Suite, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('tpa_mmseg.launch.execute._PATIENCE', 0.1)
    (found,) = plan('main', 'demo', benchmarks=['dawn'])
    with RunTask(found, tmp_path / 'runs').folder.lock():
        assert run(tmp_path).state is State.WAITING
    assert 'Another process works on main fcn_r18_dawn.' in capsys.readouterr().out


def test_a_look_at_a_run_does_not_keep_its_process_from_starting(suite: Suite, tmp_path: Path) -> None:
    (found,) = plan('main', 'demo', benchmarks=['dawn'])
    taken = threading.Event()

    def look() -> None:
        with RunTask(found, tmp_path / 'runs').folder.lock():
            taken.set()
            time.sleep(0.3)

    threading.Thread(target=look).start()
    assert taken.wait(10)
    assert run(tmp_path).state is State.DONE


def test_second_attempt_uses_the_banks_of_the_first(suite: Suite, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        use(replace(suite, ablation_benchmarks=('dawn',)), patch)
        first = run(tmp_path, experiment='bank-size')
        written = {path.name: path.stat().st_mtime_ns for path in first.folder.banks.iterdir()}
        first.folder.results.unlink()
        second = run(tmp_path, experiment='bank-size')
        assert second.result.variants == first.result.variants
        assert {path.name: path.stat().st_mtime_ns for path in first.folder.banks.iterdir()} == written
        # A bank of another pool is none.
        first.folder.results.unlink()
        third = run(tmp_path, experiment='bank-size', **{'custom_hooks.0.pool.size': 1})
        assert third.result.variant('full').bank.images == 1


def test_result_tells_the_settings_it_was_made_with(suite: Suite, tmp_path: Path) -> None:
    options = {'custom_hooks.0.pool.size': 1}
    result = run(tmp_path, **options).result
    assert result.variant('full').bank.images == 1
    assert result.cfg_options == options
    assert result.made_with({**options, 'test_dataloader.num_workers': 2}) and not result.made_with({})


def test_task_survives_the_trip_to_another_process() -> None:
    for found in (*plan('components'), *plan('k'), *plan('overlap')):
        task = RunTask(found, Path('runs'), {'a.b': [1, 2]})
        assert pickle.loads(pickle.dumps(task)) == task


def test_costs_are_measured_when_nothing_else_of_the_command_runs() -> None:
    assert [name for name in EXPERIMENTS if RunTask(plan(name)[0], Path('runs')).alone] == ['cost']


@pytest.mark.parametrize('experiment', ['repetition', 'overlap', 'pictures', 'anchors', 'bank-size'])
def test_experiments_that_need_more_than_scores_leave_their_data(suite: Suite, tmp_path: Path, experiment: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        drawn = {'pictures': (ROW,), 'picture_benchmarks': ('dawn',), 'anchors': ROW}
        use(replace(suite, ablation_benchmarks=('dawn',), **drawn), patch)
        view = run(tmp_path, experiment=experiment)
    assert view.error is None
    if experiment == 'repetition':
        (labels,) = view.result.repetition
        assert (labels.source, labels.sizes[-1]) == ('labels', 3)
        assert view.result.host is None
    elif experiment == 'overlap':
        assert [split.key for split in view.result.overlap] == ['high', 'random', 'low']
        assert view.result.images == view.result.overlap[0].evaluation_images == 2
        assert [variant.value for variant in view.result.variants] == [s.overlap for s in view.result.overlap]
    elif experiment in ('pictures', 'anchors'):
        kinds = {'pictures': {'comparison', 'host', 'tpa'}, 'anchors': {'anchors'}}
        assert {picture.kind for picture in view.result.pictures} == kinds[experiment]
        assert all((view.folder.path / picture.file).is_file() for picture in view.result.pictures)
    else:
        *images, usual = (variant.bank.images for variant in view.result.variants)
        assert images == sorted(images) and (images[-1], usual) == (3, 2)
