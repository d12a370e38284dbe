"""A worker finishes what it can: a failure says why and does not stop the rest, and nothing is done twice."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.reproduce.demo_suite import demo_suite, use
from tpa_mmseg.reproduce import RunFolder, State, collect, plan
from tpa_mmseg.reproduce.suite import Suite
from tpa_mmseg.reproduce.worker import Task, log_to, work


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Two runs of which the second's data are not there."""
    sound = demo_suite(tmp_path, count=3, pool=2)
    text = sound.config(None).read_text(encoding='utf-8')
    broken = tmp_path / 'broken.py'
    broken.write_text(text.replace(str(tmp_path / 'scenes'), str(tmp_path / 'gone')), encoding='utf-8')
    configs = {'dusk': broken, 'dawn': sound.config(None)}
    return use(replace(sound, config=lambda run: configs[run.benchmark]), monkeypatch)


def task(work_dir: Path, batch: str = 'one', **options) -> Task:
    return Task(experiments=('main',), suite='demo', work_dir=work_dir, batch=batch, **options)


def test_failure_says_why_and_does_not_stop_the_rest(suite: Suite, tmp_path: Path) -> None:
    assert work(task(tmp_path / 'runs')) == 2
    views = {view.run.benchmark: view for view in collect('demo', tmp_path / 'runs', ['main'])}
    assert views['dusk'].state is State.FAILED
    assert 'gone, which' in views['dusk'].error and 'prepare the data' in views['dusk'].error
    assert 'TPAError' in views['dusk'].folder.log.read_text(encoding='utf-8')
    assert views['dawn'].state is State.DONE
    assert views['dawn'].result.images == 3
    assert views['dawn'].result.variant('full').bank.images == 2


def test_finished_run_keeps_its_config_and_is_not_run_again(suite: Suite, tmp_path: Path) -> None:
    work(task(tmp_path / 'runs', benchmarks=('dawn',)))
    folder = RunFolder.of(plan('main', 'demo', benchmarks=['dawn'])[0], tmp_path / 'runs')
    assert 'TPASegmentor' in folder.config.read_text(encoding='utf-8')
    assert (folder.progress().images, folder.progress().total) == (3, 3)
    assert work(task(tmp_path / 'runs', 'two', benchmarks=('dawn',))) == 0


def test_worker_stops_at_its_limit(suite: Suite, tmp_path: Path) -> None:
    assert work(task(tmp_path / 'runs', limit=1)) == 1
    states = [view.state for view in collect('demo', tmp_path / 'runs', ['main'])]
    assert states == [State.FAILED, State.WAITING]


def test_settings_of_the_command_line_reach_the_config(suite: Suite, tmp_path: Path) -> None:
    options = {'custom_hooks.0.pool.size': 1}
    work(task(tmp_path / 'runs', benchmarks=('dawn',), cfg_options=options))
    (view,) = (view for view in collect('demo', tmp_path / 'runs', ['main']) if view.run.benchmark == 'dawn')
    assert view.result.variant('full').bank.images == 1


def test_result_tells_the_settings_it_was_made_with(suite: Suite, tmp_path: Path) -> None:
    options = {'custom_hooks.0.pool.size': 1}
    work(task(tmp_path / 'runs', benchmarks=('dawn',), cfg_options=options))
    (view,) = (view for view in collect('demo', tmp_path / 'runs', ['main']) if view.run.benchmark == 'dawn')
    assert view.result.cfg_options == options
    assert view.result.made_with({**options, 'test_dataloader.num_workers': 2}) and not view.result.made_with({})


def test_finished_run_can_be_repeated_by_the_process_that_did_it(suite: Suite, tmp_path: Path) -> None:
    work(task(tmp_path / 'runs', benchmarks=('dawn',)))
    folder = RunFolder.of(plan('main', 'demo', benchmarks=['dawn'])[0], tmp_path / 'runs')
    folder.set_aside()
    assert folder.state() is State.WAITING
    assert work(task(tmp_path / 'runs', 'two', benchmarks=('dawn',))) == 1
    assert folder.state() is State.DONE


def test_handler_of_an_earlier_run_writes_into_the_log_of_the_present_one(tmp_path: Path) -> None:
    logger = logging.Logger('of a worker')
    with log_to(tmp_path / 'first.log'):
        logger.addHandler(logging.StreamHandler(sys.stdout))
        logger.warning('one')
    with log_to(tmp_path / 'second.log'):
        logger.warning('two')
    assert [(tmp_path / f'{name}.log').read_text() for name in ('first', 'second')] == ['one\n', 'two\n']


def test_task_survives_the_trip_to_another_process(tmp_path: Path) -> None:
    given = task(tmp_path, hosts=('fcn',), cfg_options={'a.b': [1, 2]}, limit=3)
    restored = Task.from_json(given.to_json())
    assert json.loads(restored.to_json()) == json.loads(given.to_json())
    assert restored.work_dir == tmp_path


@pytest.mark.parametrize('experiment', ['repetition', 'overlap', 'pictures', 'bank-size'])
def test_experiments_that_need_more_than_scores_leave_their_data(suite: Suite, tmp_path: Path, experiment: str) -> None:
    use_sound = replace(suite, ablation_benchmarks=('dawn',))
    with pytest.MonkeyPatch.context() as patch:
        use(use_sound, patch)
        given = replace(task(tmp_path / 'runs', benchmarks=('dawn',)), experiments=(experiment,))
        assert work(given) == 1
        (view,) = (v for v in collect('demo', tmp_path / 'runs', [experiment]) if v.run.benchmark == 'dawn')
    assert view.error is None
    if experiment == 'repetition':
        labels, anchors = view.result.repetition
        assert (labels.source, labels.sizes[-1], anchors.source, anchors.sizes[-1]) == ('labels', 3, 'anchors', 2)
        assert view.result.host is None
    elif experiment == 'overlap':
        assert [split.key for split in view.result.overlap] == ['high', 'random', 'low']
        assert view.result.images == view.result.overlap[0].evaluation_images == 2
        assert [variant.value for variant in view.result.variants] == [s.overlap for s in view.result.overlap]
    elif experiment == 'pictures':
        assert {picture.kind for picture in view.result.pictures} == {'comparison', 'anchors'}
        assert all((view.folder.path / picture.file).is_file() for picture in view.result.pictures)
    else:
        images = [variant.bank.images for variant in view.result.variants]
        assert images == sorted(images) and images[-1] == 2
