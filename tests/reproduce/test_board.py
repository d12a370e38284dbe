"""The board counts the images of all runs from what their folders say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reproduce.demo_suite import ROW
from tpa_mmseg.reproduce import RunFolder
from tpa_mmseg.reproduce.board import Board
from tpa_mmseg.reproduce.claims import claim
from tpa_mmseg.reproduce.layout import Progress
from tpa_mmseg.reproduce.runs import Run

RUNS = [Run('main', 'demo', ROW, name) for name in ('a', 'b', 'c')]


def shown(work_dir: Path, capsys: pytest.CaptureFixture) -> str:
    Board(RUNS, lambda run: 100, work_dir, 'now').look()
    return capsys.readouterr().err


def note(work_dir: Path, run: Run, batch: str, **progress) -> None:
    folder = RunFolder.of(run, work_dir)
    folder.note(Progress(claim(folder.path, batch, None).number, **progress))


def test_images_are_guessed_until_a_run_says_how_many_it_has(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert '0 of 3 runs: 0 of 300 images' in shown(tmp_path, capsys)
    note(tmp_path, RUNS[0], 'now', images=5, total=20)
    assert '0 of 3 runs: 5 of 220 images' in shown(tmp_path, capsys)


def test_failure_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    note(tmp_path, RUNS[1], 'now', error='No data.')
    said = shown(tmp_path, capsys)
    assert 'failed: fcn_r18_b: No data.' in said
    assert '0 of 3 runs: 100 of 300 images' in said and '1 failed' in said


def test_failure_of_an_earlier_start_is_still_to_be_tried(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    note(tmp_path, RUNS[1], 'before', error='No data.')
    said = shown(tmp_path, capsys)
    assert 'failed' not in said and '0 of 300 images' in said
