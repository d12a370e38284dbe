"""Tasks run in slots, each once; what is killed is noticed, and the next start repeats nothing that is done."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.tasks import Tiny, labels, send, tiny, trace, wait_for
from tests.helpers.world import ROOT, environment
from tpa_mmseg.errors import TPAError
from tpa_mmseg.launch import LaunchOptions, Progress, State, launch, local
from tpa_mmseg.launch.board import Board
from tpa_mmseg.launch.execute import execute

LAUNCH = """
import json, sys
from pathlib import Path
from tests.helpers.tasks import tiny
from tpa_mmseg.launch import LaunchOptions, launch
root = Path(sys.argv[1])
launch(tiny(root, sys.argv[2]), LaunchOptions(**json.loads(sys.argv[3])), root)
"""


@pytest.fixture(autouse=True)
def _tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes find the tests' tasks."""
    monkeypatch.setenv('PYTHONPATH', str(ROOT))
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)


def test_every_gpu_is_a_slot_and_cpus_share_their_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def slots(variable: str, **options) -> list[str]:
        return [slot.keywords['environment'][variable] for slot in local.slots(LaunchOptions(**options))]

    monkeypatch.setattr(local.torch.cuda, 'device_count', lambda: 5)
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    assert slots('CUDA_VISIBLE_DEVICES') == ['0', '1', '2', '3', '4']
    assert slots('CUDA_VISIBLE_DEVICES', gpus_per_task=2) == ['0,1', '2,3']
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '4,GPU-6,7,8,9')
    assert slots('CUDA_VISIBLE_DEVICES', gpus=2) == ['4', 'GPU-6']
    with pytest.raises(TPAError, match='--gpus 6 asks for more GPUs than the 5'):
        slots('CUDA_VISIBLE_DEVICES', gpus=6)
    with pytest.raises(TPAError, match='3 GPUs per task are more than the 2'):
        slots('CUDA_VISIBLE_DEVICES', gpus=2, gpus_per_task=3)
    monkeypatch.setattr(local.torch.cuda, 'device_count', lambda: 0)
    monkeypatch.setattr(local.os, 'cpu_count', lambda: 8)
    assert slots('OMP_NUM_THREADS', processes=4) == ['2'] * 4
    assert slots('OMP_NUM_THREADS', processes=2, gpus_per_task=2) == ['2'] * 2


@pytest.mark.slow
def test_failures_say_why_do_not_stop_the_rest_and_are_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local.os, 'cpu_count', lambda: 2)
    good, bad, dead, last = tasks = [*tiny(tmp_path, 'good bad dead'), Tiny(tmp_path, 'last', last=True)]
    # Two at a time: each waits for the other.
    good.ask('meet')
    bad.ask('meet')
    bad.ask('fail', 'No data.')
    dead.ask('kill')
    states = launch([last, good, bad, dead], LaunchOptions(processes=2), tmp_path, 'shards')
    assert states == {State.DONE: 2, State.FAILED: 2}
    said = capsys.readouterr()
    assert '0 of 4 shards are done; 4 to run with 4 images.' in said.out
    assert f'2 of 4 shards are done, 2 failed; results are in {tmp_path}.' in said.out
    assert 'failed: bad: No data.' in said.err
    assert 'failed: dead: The process ended without a message (exit code -9)' in said.err
    assert sorted(labels(tmp_path)[:3]) == ['bad', 'dead', 'good']
    assert [threads for _, threads, _ in trace(tmp_path)] == ['1', '1', '1', '2']
    assert 'TPAError: No data.' in bad.folder.log.read_text()
    for path in tmp_path.glob('*.*'):
        path.unlink()
    assert launch(tasks, LaunchOptions(processes=2), tmp_path) == {State.DONE: 4}
    assert sorted(labels(tmp_path)[4:]) == ['bad', 'dead']


def test_what_another_process_works_on_is_left_to_it(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    task, other = tiny(tmp_path, 'mine other')
    task.output.parent.mkdir(parents=True)
    task.output.write_text('1')
    with other.folder.lock():
        other.folder.note(Progress(1, 2))
        assert launch([task, other], LaunchOptions(), tmp_path) == {State.DONE: 1, State.RUNNING: 1}
    assert '1 of 2 runs are done, 1 running elsewhere; 0 to run with 0 images.' in capsys.readouterr().out
    assert other.state() is State.INTERRUPTED and not trace(tmp_path)


@pytest.mark.slow
def test_killed_launcher_and_killed_task_lose_nothing(tmp_path: Path) -> None:
    first, second = tasks = tiny(tmp_path, 'first second')
    hold = second.ask('hold')
    command = [sys.executable, '-c', LAUNCH, tmp_path, 'first second', '{}']
    launcher = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: second.state() is State.RUNNING, 'the second task did not start')
    finally:
        launcher.kill()
        launcher.wait()
    # Its process goes on, and nobody starts another.
    assert launch(tasks, LaunchOptions(), tmp_path) == {State.DONE: 1, State.RUNNING: 1}
    send(second, signal.SIGKILL)
    wait_for(lambda: second.state() is State.INTERRUPTED, 'the lock outlived its process')
    hold.unlink()
    assert launch(tasks, LaunchOptions(), tmp_path) == {State.DONE: 2}
    assert labels(tmp_path) == ['first', 'second', 'second']


@pytest.mark.slow
def test_ranks_share_a_task_and_the_first_error_is_told(tmp_path: Path) -> None:
    both, wrong = tasks = [Tiny(tmp_path, 'both', ranks=True), Tiny(tmp_path, 'wrong', ranks=True)]
    wrong.ask('fail', 'No data.')
    # Both at once on one machine: neither has a fixed port.
    launch(tasks, LaunchOptions(gpus_per_task=2, processes=2), tmp_path)
    assert json.loads(both.output.read_text()) == 2
    assert wrong.look() == (State.FAILED, 'No data.')
    assert sorted(labels(tmp_path)) == ['both'] * 2 + ['wrong'] * 2


def test_rerun_limit_and_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    done, left, lacking = tasks = tiny(tmp_path, 'done left lacking')
    execute(done)
    lacking.ask('weights')
    launch(tasks, LaunchOptions(dry_run=True), tmp_path)
    out = capsys.readouterr().out
    assert '| left    |      1 | nothing |' in out and '| lacking |      1 | weights |' in out and '| done' not in out
    assert f'MB that are free in {tmp_path}.' in out
    launch(tasks, LaunchOptions(dry_run=True, rerun=True, limit=1), tmp_path)
    out = capsys.readouterr().out
    assert '| done' in out and '| left' not in out
    assert done.state() is State.DONE and not left.folder.path.exists()


def test_task_without_output_has_failed(tmp_path: Path) -> None:
    class Idle(Tiny):
        def work(self) -> None:
            pass

    task = Idle(tmp_path, 'idle')
    execute(task)
    state, why = task.look()
    assert state is State.FAILED and 'idle ended without its output' in why


def test_bar_counts_images_from_the_notes_of_tasks(tmp_path: Path) -> None:
    under_way, failing, done = tasks = tiny(tmp_path, 'under-way failing done')
    board = Board(tasks, 'shards')
    with board.bar, under_way.folder.lock():
        under_way.folder.note(Progress(5, 20))
        board.look()
        assert (board.bar.done, board.bar.total, board.bar.description) == (5, 22, '0 of 3 shards')
        failing.folder.note(Progress(2, 20, error='No data.'))
        execute(done)
        board.look()
        # What failed does not make the rest look faster.
        assert (board.bar.done, board.bar.total, board.bar.note) == (6, 21, '1 failed')
        assert board.open == [under_way]
