"""Runs are started in slots, each once; what is killed is noticed, and the next start repeats nothing that is done."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import submitit
from tpa_tools import reproduce

from tests.helpers import slurm as one_node
from tests.helpers.world import ROOT, environment, run_in_process
from tests.reproduce.test_results import RESULT
from tpa_mmseg.errors import TPAError
from tpa_mmseg.reproduce import State, launch, plan, slurm
from tpa_mmseg.reproduce.folders import Progress, RunView, view
from tpa_mmseg.reproduce.run import Task

PATIENCE = 600
OPTIONS = {'test_dataloader.dataset.size': 20, 'custom_hooks.0.pool.size': 2}
SETTINGS = ['--cfg-options', *(f'{key}={value}' for key, value in OPTIONS.items())]
COMMAND = 'reproduce', 'run', 'main', '--suite', 'miniature', '--host', 'clip', 'maskclip'
#: Stands for the process of a run. Its folder is that of its log; files named kill, fail and together say what it does.
STUB = """
import json, os, sys, time
sys.stdin.buffer.read()
folder = os.path.dirname(os.readlink('/proc/self/fd/1'))
with open(sys.argv[1] + '/trace', 'a') as trace:
    trace.write(json.dumps([os.path.basename(folder), time.time(), os.environ['OMP_NUM_THREADS']]) + '\\n')
time.sleep(0.3)
while os.path.exists(sys.argv[1] + '/together') and len(open(sys.argv[1] + '/trace').readlines()) % 2:
    time.sleep(0.05)
if 'maskclip' in folder and os.path.exists(sys.argv[1] + '/kill'):
    os.kill(os.getpid(), 9)
if 'maskclip' in folder and os.path.exists(sys.argv[1] + '/fail'):
    open(folder + '/state.json', 'w').write('{"error": "No data."}')
else:
    os.link(sys.argv[1] + '/result', folder + '/results.json')
"""


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes runs cheap: the folder has files that say what they do, and a trace of what was started."""
    RESULT.save(tmp_path / 'result')
    monkeypatch.setattr(launch, 'COMMAND', (sys.executable, '-c', STUB, str(tmp_path)))
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
    return tmp_path


def start(folder: Path, *options: str) -> list[RunView]:
    """Runs two hosts. Returns how they stand afterward."""
    with contextlib.suppress(SystemExit):
        run_in_process(*COMMAND, '--work-dir', folder / 'runs', *options)
    return states(folder)


def states(folder: Path) -> list[RunView]:
    return [view(run, folder / 'runs') for run in plan('main', 'miniature', hosts=['clip', 'maskclip'])]


def trace(folder: Path) -> list[list]:
    return [json.loads(line) for line in (folder / 'trace').read_text().splitlines()]


def test_every_gpu_is_a_slot_and_cpus_share_their_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.torch.cuda, 'device_count', lambda: 3)
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    assert [slot['CUDA_VISIBLE_DEVICES'] for slot in launch.slots(None, processes=1)] == ['0', '1', '2']
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '4,GPU-6,7')
    assert [slot['CUDA_VISIBLE_DEVICES'] for slot in launch.slots(2, processes=1)] == ['4', 'GPU-6']
    with pytest.raises(TPAError, match='--gpus 4 asks for more GPUs than the 3'):
        launch.slots(4, processes=1)
    monkeypatch.setattr(launch.torch.cuda, 'device_count', lambda: 0)
    monkeypatch.setattr(launch.os, 'cpu_count', lambda: 8)
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
    assert [slot['OMP_NUM_THREADS'] for slot in launch.slots(None, processes=4)] == ['2'] * 4


def test_one_process_at_a_time_or_as_many_as_asked_for(stub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.os, 'cpu_count', lambda: 2)
    assert [one.state for one in start(stub)] == [State.DONE] * 2
    (_, first, threads), (_, second, _) = trace(stub)
    assert second - first >= 0.3 and threads == '2'
    # Each waits for the other.
    (stub / 'together').touch()
    assert [one.state for one in start(stub, '--rerun', '--processes', '2')] == [State.DONE] * 2
    assert [threads for *_, threads in trace(stub)[2:]] == ['1', '1']
    assert all((one.folder.path / 'results.old.json').exists() for one in states(stub))


def test_what_is_done_or_running_is_not_started(stub: Path, capsys: pytest.CaptureFixture) -> None:
    other = states(stub)[0].folder
    with other.lock():
        other.note(Progress(1, 2))
        start(stub, '--limit', '1')
        assert [name for name, *_ in trace(stub)] == ['maskclip_mini-b8_miniature']
        start(stub)
        assert '1 of 2 runs are done, 1 running elsewhere; 0 to run with 0 images.' in capsys.readouterr().out
    start(stub)
    assert [name for name, *_ in trace(stub)] == ['maskclip_mini-b8_miniature', 'clip_mini-b8_miniature']


@pytest.mark.parametrize(
    'behavior, why', [('fail', 'No data.'), ('kill', 'The process ended without a message (exit code -9)')]
)
def test_failure_is_reported_does_not_stop_the_rest_and_is_tried_again(
    stub: Path, capsys: pytest.CaptureFixture, behavior: str, why: str
) -> None:
    (stub / behavior).touch()
    with pytest.raises(SystemExit) as ended:
        run_in_process(*COMMAND, '--host', 'maskclip', 'clip', '--work-dir', stub / 'runs')
    assert ended.value.code == 1
    said = capsys.readouterr()
    assert '1 of 2 runs are done, 1 failed' in said.out and f'maskclip_mini-b8_miniature: {why}' in said.err
    assert '1 failed' in said.err
    (stub / behavior).unlink()
    assert [one.state for one in start(stub)] == [State.DONE] * 2
    assert len(trace(stub)) == 3


def test_bar_counts_images_from_the_notes_of_runs(tmp_path: Path) -> None:
    tasks = [Task(run, tmp_path) for run in plan('main', 'miniature', hosts=['clip', 'maskclip'])]
    board = launch.Board(tasks)
    with board.bar, tasks[0].folder.lock():
        tasks[0].folder.note(Progress(5, 20))
        board.look()
        assert (board.bar.done, board.bar.total, board.bar.description) == (5, 320, '0 of 2 runs')
        tasks[1].folder.note(Progress(2, 20, error='No data.'))
        board.look()
        assert (board.bar.done, board.bar.total, board.bar.note) == (25, 40, '1 failed')
        assert board.open == tasks[:1]


def arguments(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    reproduce.add_run(parser)
    return parser.parse_args(['main', *options])


def test_slurm_gets_the_options_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submitit.SlurmExecutor, 'affinity', lambda self: 1)
    options = '--gpus', '4', '--partition', 'gpu', '--account', 'me', '--time', '90', '--mem', '32GB'
    more = '--constraint', 'a100', '--slurm', 'cpus-per-task=8', 'mail-type=END'
    executor = submitit.SlurmExecutor(tmp_path)
    executor.update_parameters(**slurm.parameters(arguments(*options, *more)))
    text = executor._make_submission_file_text('command', 'uid').splitlines()
    for line in ('partition=gpu', 'account=me', 'time=90', 'mem=32GB', 'constraint=a100', 'gres=gpu:1', 'requeue'):
        assert f'#SBATCH --{line}' in text
    assert [line for line in text if 'cpus-per-task' in line] == ['#SBATCH --cpus-per-task=8']
    assert '#SBATCH --mail-type=END' in text
    assert executor.parameters['array_parallelism'] == 4


def test_dry_run_for_slurm_shows_its_options(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    run_in_process(*COMMAND, '--launcher', 'slurm', '--qos', 'low', '--dry-run', '--work-dir', tmp_path)
    out = capsys.readouterr().out
    assert 'clip_mini-b8_miniature' in out and '| qos' in out and '| 720' in out
    assert not list(tmp_path.iterdir())


def test_missing_sbatch_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PATH', str(tmp_path))
    start(tmp_path, '--launcher', 'slurm')
    assert 'There is no sbatch on this machine' in capsys.readouterr().err


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def kill_process_of(run: RunView) -> None:
    """Kills the processes that hold the lock of a run, as a node without memory would."""
    for path in Path('/proc').glob('[0-9]*/fd/*'):
        with contextlib.suppress(OSError):
            if os.readlink(path) == str(run.folder.path / 'lock'):
                os.kill(int(path.parts[2]), signal.SIGKILL)


@pytest.mark.slow
def test_killed_launcher_and_killed_run_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / 'tools/reproduce.py', *COMMAND[1:], '--work-dir', tmp_path / 'runs', *SETTINGS]
    launcher = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: states(tmp_path)[1].state is State.RUNNING, 'the second run did not start')
    finally:
        launcher.kill()
        launcher.wait()
    first, second = states(tmp_path)
    assert (first.state, second.state) == (State.DONE, State.RUNNING)
    kill_process_of(second)
    wait_for(lambda: states(tmp_path)[1].state is State.INTERRUPTED, 'the lock outlived its process')
    written = first.folder.results.stat().st_mtime_ns
    assert [one.state for one in start(tmp_path, *SETTINGS)] == [State.DONE, State.DONE]
    assert first.folder.results.stat().st_mtime_ns == written
    assert second.folder.log.read_text().count('maskclip_mini-b8_miniature\n') == 2


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Slurm that runs in this machine."""
    if (reason := one_node.missing()) is not None:
        pytest.skip(reason)
    with one_node.cluster(tmp_path_factory.mktemp('slurm')) as conf:
        monkeypatch.setenv('SLURM_CONF', str(conf))
        monkeypatch.setenv('OMP_NUM_THREADS', '1')
        yield


@pytest.mark.slow
def test_slurm_runs_an_array_and_a_killed_task_is_noticed_and_run_again(
    tmp_path: Path, cluster: None, capsys: pytest.CaptureFixture
) -> None:
    start(tmp_path, '--launcher', 'slurm', '--no-wait', '--gpus', '1', *SETTINGS)
    job = capsys.readouterr().out.split('Slurm job ')[1].split(':')[0]
    wait_for(lambda: states(tmp_path)[1].state is State.RUNNING, 'the second task did not start')
    # Without accounting, as here, submitit would wait for this task forever.
    kill_process_of(states(tmp_path)[1])
    board = launch.Board([Task(one.run, tmp_path / 'runs') for one in states(tmp_path)])
    with board.bar:
        slurm.watch([job], board)
    first, second = states(tmp_path)
    assert first.state is State.DONE
    assert second.state is State.FAILED and f'ended without a message (Slurm job {job})' in second.error
    written = first.folder.results.stat().st_mtime_ns
    assert [one.state for one in start(tmp_path, '--launcher', 'slurm', *SETTINGS)] == [State.DONE] * 2
    assert '1 of 2 runs are done; 1 to run' in capsys.readouterr().out
    assert first.folder.results.stat().st_mtime_ns == written
    assert second.folder.log.read_text().count('maskclip_mini-b8_miniature\n') == 2
