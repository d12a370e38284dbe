"""A run is done when its results are valid, and belongs to one process at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.reproduce.demo_suite import ROW
from tests.reproduce.test_results import RESULT
from tpa_mmseg.launch import Progress, State
from tpa_mmseg.reproduce.folders import RunFolder, view
from tpa_mmseg.reproduce.runs import Run

RUN = Run('main', 'demo', ROW, 'dusk')
HOLD = """
import sys, time, filelock
with filelock.FileLock(sys.argv[1]):
    print('locked', flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.of(RUN, tmp_path)


def state(tmp_path: Path) -> State:
    return view(RUN, tmp_path).state


def test_run_without_a_folder_is_waiting(tmp_path: Path, folder: RunFolder) -> None:
    assert state(tmp_path) is State.WAITING
    assert not folder.path.exists()


def test_run_is_running_while_its_process_lives_and_interrupted_afterward(tmp_path: Path, folder: RunFolder) -> None:
    folder.note(Progress(3, 7))
    assert state(tmp_path) is State.INTERRUPTED
    process = subprocess.Popen([sys.executable, '-c', HOLD, folder.path / 'lock'], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == 'locked\n'
        assert state(tmp_path) is State.RUNNING
        with pytest.raises(TimeoutError), folder.lock():
            pass
    finally:
        process.kill()
        process.communicate()
    assert state(tmp_path) is State.INTERRUPTED
    assert folder.progress() == Progress(3, 7)


def test_failure_says_why_until_the_run_is_reset(tmp_path: Path, folder: RunFolder) -> None:
    folder.note(Progress(error='No space left.'))
    found = view(RUN, tmp_path)
    assert (found.state, found.error) == (State.FAILED, 'No space left.')
    folder.reset()
    assert state(tmp_path) is State.WAITING


def test_results_make_a_run_done_whatever_its_last_note_says(tmp_path: Path, folder: RunFolder) -> None:
    folder.note(Progress(error='No space left.'))
    RESULT.save(folder.results)
    found = view(RUN, tmp_path)
    assert (found.state, found.result, found.error) == (State.DONE, RESULT, None)


def test_results_that_cannot_be_read_are_a_failure(tmp_path: Path, folder: RunFolder) -> None:
    folder.path.mkdir(parents=True)
    folder.results.write_text('{', encoding='utf-8')
    found = view(RUN, tmp_path)
    assert found.state is State.FAILED and 'results.json is not a readable result' in found.error


def test_results_of_a_run_that_is_reset_are_kept(tmp_path: Path, folder: RunFolder) -> None:
    RESULT.save(folder.results)
    folder.reset()
    assert state(tmp_path) is State.WAITING
    assert (folder.path / 'results.old.json').exists()
