"""Killing a start half-way and starting again finishes the work without repeating what was done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.world import ROOT, environment
from tpa_mmseg.reproduce import RunFolder, State, plan
from tpa_mmseg.reproduce.claims import last_claim
from tpa_mmseg.reproduce.worker import Task, work

PATIENCE = 600
OPTIONS = {'test_dataloader.dataset.size': 20, 'custom_hooks.0.pool.size': 2}


def wait_for(condition, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.mark.slow
def test_killed_start_is_finished_by_the_next_one_without_repeating(tmp_path: Path) -> None:
    first, second = plan('main', 'miniature', hosts=['clip', 'maskclip'])
    folders = [RunFolder.of(run, tmp_path) for run in (first, second)]
    settings = [f'{key}={value}' for key, value in OPTIONS.items()]
    command = [sys.executable, ROOT / 'tools/reproduce.py', 'run', 'main', '--suite', 'miniature']
    command += ['--work-dir', tmp_path, '--host', 'clip', 'maskclip', '--cfg-options', *settings]
    started = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: folders[1].state() is State.RUNNING, 'the second run did not start')
    finally:
        os.kill(started.pid, signal.SIGKILL)
        started.wait()
    # The worker ends with the process that started it.
    wait_for(lambda: folders[1].state() in (State.INTERRUPTED, State.DONE), 'the worker went on')
    assert folders[0].state() is State.DONE
    before = folders[0].results.stat().st_mtime_ns
    was_interrupted = folders[1].state() is State.INTERRUPTED
    task = Task(('main',), 'miniature', tmp_path, 'again', hosts=('clip', 'maskclip'), cfg_options=OPTIONS)
    assert work(task) == was_interrupted
    assert [folder.state() for folder in folders] == [State.DONE, State.DONE]
    assert folders[0].results.stat().st_mtime_ns == before
    assert [last_claim(folder.path).number for folder in folders] == [1, 1 + was_interrupted]
