"""Runs of experiments by the launcher: on a real Slurm, on several ranks, and again after a kill."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.tasks import send, wait_for
from tests.helpers.world import ROOT, run_in_process
from tpa_mmseg.launch import Progress, State
from tpa_mmseg.reproduce import plan
from tpa_mmseg.reproduce.run import RunTask

OPTIONS = {'test_dataloader.dataset.size': 20, 'custom_hooks.0.pool.size': 2}
SETTINGS = ['--cfg-options', *(f'{key}={value}' for key, value in OPTIONS.items())]
COMMAND = 'reproduce', 'run', 'main', '--suite', 'miniature', '--host', 'clip', 'maskclip'


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs two hosts."""
    monkeypatch.setenv('PYTHONPATH', str(ROOT))

    def start(*options: str) -> None:
        with contextlib.suppress(SystemExit):
            run_in_process(*COMMAND, '--work-dir', tmp_path, *SETTINGS, *options)

    return start


def tasks(folder: Path) -> list[RunTask]:
    return [RunTask(run, folder, OPTIONS) for run in plan('main', 'miniature', hosts=['clip', 'maskclip'])]


def scores(task: RunTask) -> dict:
    """What a run has found, without times."""
    found = json.loads(task.folder.results.read_text())
    return {key: found[key] for key in ('images', 'host', 'variants')}


@pytest.mark.slow
def test_slurm_runs_an_array_whose_killed_run_goes_on_with_its_bank(
    tmp_path: Path, one_node_slurm: None, start: Callable, capsys: pytest.CaptureFixture
) -> None:
    start('--launcher', 'slurm', '--no-wait', '--gpus', '1')
    first, second = tasks(tmp_path)
    # The test has begun, so the bank is there.
    wait_for(lambda: (second.folder.progress() or Progress()).total > 0, 'the second run did not start')
    send(second, signal.SIGKILL)
    wait_for(lambda: second.state() is not State.RUNNING, 'the lock outlived its process')
    assert first.state() is State.DONE
    written = first.folder.results.stat().st_mtime_ns
    bank = (second.folder.banks / 'full.safetensors').stat().st_mtime_ns
    # One run, shared by two ranks.
    start('--launcher', 'slurm', '--gpus-per-run', '2')
    assert '1 of 2 runs are done; 1 to run' in capsys.readouterr().out
    assert [task.state() for task in (first, second)] == [State.DONE] * 2
    assert first.folder.results.stat().st_mtime_ns == written
    assert (second.folder.banks / 'full.safetensors').stat().st_mtime_ns == bank
    log = second.folder.log.read_text()
    assert log.count('main maskclip_mini-b8_miniature\n') == 2 and 'of an earlier run' in log
    shared = scores(second)
    second.reset()
    second.work()
    assert scores(second) == shared
