"""What is done is not taken again, what failed is tried once per start, and a silent death is written down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.reproduce.demo_suite import ROW
from tests.reproduce.test_claims import start_task
from tpa_mmseg.reproduce.claims import claim
from tpa_mmseg.reproduce.layout import Progress, RunFolder, State
from tpa_mmseg.reproduce.queue import take
from tpa_mmseg.reproduce.runs import Run

RUNS = [Run('main', 'demo', ROW, name) for name in ('a', 'b', 'c')]


def names(work_dir: Path, batch: str) -> list[str]:
    return [run.benchmark for run, _, _ in take(RUNS, work_dir, batch)]


def die(path: Path) -> None:
    """Makes the claim look like that of a process that is gone."""
    path.write_text(json.dumps({**json.loads(path.read_text()), 'born': 'long ago'}), 'utf-8')


def elsewhere(path: Path) -> None:
    """Makes the claim look like that of a process on another machine that was alive just now."""
    path.write_text(json.dumps({**json.loads(path.read_text()), 'machine': 'elsewhere'}), 'utf-8')


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.of(RUNS[1], tmp_path)


def test_all_waiting_runs_are_taken_in_order(tmp_path: Path) -> None:
    assert names(tmp_path, 'one') == ['a', 'b', 'c']


def test_run_of_a_living_process_is_left_to_it(tmp_path: Path, folder: RunFolder) -> None:
    claim(folder.path, 'other', None)
    assert folder.state() is State.RUNNING
    assert names(tmp_path, 'one') == ['a', 'c']


def test_finished_run_is_not_taken(tmp_path: Path, folder: RunFolder) -> None:
    folder.path.mkdir(parents=True)
    folder.results.write_text('{}')
    assert names(tmp_path, 'one') == ['a', 'c']


def test_failed_run_is_tried_again_by_the_next_start_only(tmp_path: Path, folder: RunFolder) -> None:
    failed = claim(folder.path, 'one', None)
    folder.note(Progress(failed.number, error='No space left.'))
    assert folder.state() is State.FAILED
    assert names(tmp_path, 'one') == ['a', 'c']
    assert 'b' in names(tmp_path, 'two')


def test_error_of_an_earlier_attempt_does_not_count_for_the_present_one(tmp_path: Path, folder: RunFolder) -> None:
    failed = claim(folder.path, 'one', None)
    folder.note(Progress(failed.number, error='No space left.'))
    claim(folder.path, 'two', failed)
    assert folder.state() is State.RUNNING


def test_interrupted_run_is_taken_up_by_the_next_start(tmp_path: Path, folder: RunFolder) -> None:
    die(claim(folder.path, 'one', None).path)
    assert folder.state() is State.INTERRUPTED
    taken = {run.benchmark: claimed for run, _, claimed in take(RUNS, tmp_path, 'two')}
    assert taken['b'].number == 2


def test_death_within_a_start_is_a_failure_that_says_so(tmp_path: Path, folder: RunFolder) -> None:
    die(claim(folder.path, 'one', None).path)
    assert names(tmp_path, 'one') == ['a', 'c']
    assert folder.state() is State.FAILED
    assert 'ended without a word' in folder.progress().error


def test_requeued_task_goes_on_with_its_own_run_first(
    tmp_path: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_task(monkeypatch, '3')
    mine = claim(folder.path, 'slurm-17', None)
    elsewhere(mine.path)
    start_task(monkeypatch, '3', restarts=1)
    assert names(tmp_path, 'slurm-17-3-1') == ['b', 'a', 'c']


def test_requeued_task_tries_its_run_again_though_another_task_found_it_dead(
    tmp_path: Path, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_task(monkeypatch, '3')
    mine = claim(folder.path, 'slurm-17', None)
    folder.note(Progress(mine.number, error='Process 1 ended without a word.'))
    start_task(monkeypatch, '3', restarts=1)
    assert names(tmp_path, 'slurm-17-3-1')[0] == 'b'


def test_run_whose_results_were_taken_away_is_free_though_its_process_lives(tmp_path: Path, folder: RunFolder) -> None:
    done = claim(folder.path, 'one', None)
    folder.results.write_text('{}')
    folder.note(Progress(done.number, over=True))
    assert folder.state() is State.DONE
    folder.set_aside()
    assert done.alive() and folder.state() is State.WAITING
    taken = {run.benchmark: claimed for run, _, claimed in take(RUNS, tmp_path, 'two')}
    assert taken['b'].number == 2
    assert (folder.path / 'results.old.json').exists()
