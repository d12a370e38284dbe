"""What is done is not taken again, what failed is tried once per start, and a silent death is written down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tpa_mmseg.reproduce.claims import claim
from tpa_mmseg.reproduce.layout import Progress, RunFolder, State
from tpa_mmseg.reproduce.queue import take
from tpa_mmseg.reproduce.runs import Run

RUNS = [Run('main', 'demo', 'fcn', 'r18', name) for name in ('a', 'b', 'c')]


def names(work_dir: Path, batch: str) -> list[str]:
    return [run.benchmark for run, _, _ in take(RUNS, work_dir, batch)]


def die(path: Path) -> None:
    """Makes the claim look like that of a process that is gone."""
    path.write_text(json.dumps({**json.loads(path.read_text()), 'born': 'long ago'}), 'utf-8')


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
