"""Runs of experiments by the launcher: on a real Slurm, again after a requeue, and on several ranks."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.tasks import send, wait_for
from tests.helpers.world import ROOT, run_in_process
from tpa_mmseg.launch import Progress, State
from tpa_mmseg.launch.execute import execute
from tpa_mmseg.reproduce import plan
from tpa_mmseg.reproduce.run import RunTask

OPTIONS = {'test_dataloader.dataset.size': 40, 'custom_hooks.0.pool.size': 2}
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
def test_slurm_runs_an_array_whose_requeued_run_goes_on_with_its_bank(
    tmp_path: Path, one_node_slurm: None, start: Callable, capsys: pytest.CaptureFixture
) -> None:
    start('--launcher', 'slurm', '--no-wait', '--gpus', '2')
    first, second = tasks(tmp_path)
    # The test has begun, so the bank is there.
    wait_for(lambda: (second.folder.progress() or Progress()).total > 0, 'the second run did not start')
    bank = (second.folder.banks / 'full.safetensors').stat().st_mtime_ns
    # What Slurm sends before it takes the node away.
    send(second, signal.SIGUSR2)
    for task in (first, second):
        wait_for(lambda task=task: task.state() is State.DONE, f'{task.name} did not end')
    assert (second.folder.banks / 'full.safetensors').stat().st_mtime_ns == bank
    logs = [task.folder.log.read_text() for task in (first, second)]
    assert [log.count(f'{task.name}\n') for log, task in zip(logs, (first, second), strict=True)] == [1, 2]
    assert 'of an earlier run' in logs[1]
    start('--launcher', 'slurm')
    assert '2 of 2 runs are done; 0 to run' in capsys.readouterr().out
    # Two ranks find the same.
    shared = replace(second, work_dir=tmp_path / 'shared')
    execute(shared, ranks=2)
    assert scores(shared) == scores(second)
