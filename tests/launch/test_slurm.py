"""A real Slurm of one node runs tasks as a job array: requeued, killed, canceled or left alone by its launcher."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.tasks import labels, send, tiny, trace, wait_for
from tests.helpers.world import ROOT, environment
from tests.launch.test_local import LAUNCH
from tpa_mmseg.errors import TPAError
from tpa_mmseg.launch import LaunchOptions, State, launch, slurm
from tpa_mmseg.launch.board import Board

SLURM = LaunchOptions('slurm', wait=False)


@pytest.fixture(autouse=True)
def _tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes find the tests' tasks."""
    monkeypatch.setenv('PYTHONPATH', str(ROOT))


def job_of(text: str) -> str:
    return text.split('Slurm job ')[1].split(':')[0]


@pytest.mark.slow
def test_array_goes_on_after_a_requeue_and_a_preemption_and_notices_a_death(
    tmp_path: Path, one_node_slurm: None, capsys: pytest.CaptureFixture
) -> None:
    requeued, preempted, bad, dead = tasks = tiny(tmp_path, 'requeued preempted bad dead')
    holds = [requeued.ask('hold'), preempted.ask('hold')]
    bad.ask('fail', 'No data.')
    dead.ask('kill')
    launch(tasks, LaunchOptions('slurm', gpus=2, wait=False, sbatch={'time': 30}), tmp_path)
    job = job_of(capsys.readouterr().out)
    wait_for(lambda: len(trace(tmp_path)) == 2, 'the first two tasks did not start')
    # One GPU each, and no third task beside them.
    assert {gpus for *_, gpus in trace(tmp_path)} == {'0', '1'}
    assert sorted(labels(tmp_path)) == ['preempted', 'requeued']
    subprocess.run(['scontrol', 'requeue', f'{job}_0'], check=True)
    # What Slurm sends before it takes the node away.
    send(preempted, signal.SIGUSR2)
    for task, hold in zip(tasks, holds, strict=False):
        wait_for(lambda task=task: task.state() is State.INTERRUPTED, 'Slurm did not end the task')
        hold.unlink()
    board = Board(tasks, 'runs')
    with board.bar:
        # There is no accounting here: submitit would wait for the dead task forever.
        slurm.watch([job], tmp_path / 'slurm', board)
    assert [task.state() for task in tasks] == [State.DONE, State.DONE, State.FAILED, State.FAILED]
    assert bad.look()[1] == 'No data.'
    assert f'ended without a message (Slurm job {job})' in dead.look()[1]
    assert sorted(labels(tmp_path)) == ['bad', 'dead', *['preempted'] * 2, *['requeued'] * 2]


@pytest.mark.slow
def test_killed_launcher_and_canceled_array_lose_nothing(
    tmp_path: Path, one_node_slurm: None, capsys: pytest.CaptureFixture
) -> None:
    first, second = tasks = tiny(tmp_path, 'first second')
    hold = second.ask('hold')
    command = [sys.executable, '-c', LAUNCH, tmp_path, 'first second', '{"launcher": "slurm"}']
    launcher = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        job = job_of(''.join(launcher.stdout.readline().decode() for _ in range(2)))
        wait_for(lambda: first.state() is State.DONE and second.state() is State.RUNNING, 'the array did not start')
    finally:
        launcher.kill()
        launcher.communicate()
    assert launch(tasks, SLURM, tmp_path) == {State.DONE: 1, State.RUNNING: 1}
    assert '1 running elsewhere; 0 to run' in capsys.readouterr().out
    subprocess.run(['scancel', job], check=True)
    wait_for(lambda: second.state() is State.INTERRUPTED, 'the lock outlived its process')
    hold.unlink()
    assert launch(tasks, LaunchOptions('slurm'), tmp_path) == {State.DONE: 2}
    # The two start together: either may be the first to write.
    assert sorted(labels(tmp_path)) == ['first', 'second', 'second']


def test_array_that_never_started_is_not_waited_for(
    tmp_path: Path, one_node_slurm: None, capsys: pytest.CaptureFixture
) -> None:
    tasks = tiny(tmp_path, 'a b')
    launch(tasks, LaunchOptions('slurm', wait=False, sbatch={'begin': 'now+1hour'}), tmp_path)
    job = job_of(capsys.readouterr().out)
    subprocess.run(['scancel', job], check=True)
    board = Board(tasks, 'runs')
    with board.bar:
        slurm.watch([job], tmp_path / 'slurm', board)
    state, why = tasks[0].look()
    assert state is State.FAILED and f'killed, canceled, or ran out of time or memory. {tmp_path}/slurm may say' in why
    with pytest.raises(TPAError, match='Slurm refused the job .sbatch: error: .*: change its options'):
        launch(tasks, LaunchOptions('slurm', sbatch={'partition': 'none'}), tmp_path)
    # Nothing was started that would make the failure outdated.
    assert tasks[0].state() is State.FAILED


def test_sbatch_gets_the_options(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    given = {'partition': 'gpu', 'time': 90, 'mem': '32GB', 'cpus_per_task': '8', 'mail_type': 'END'}
    options = LaunchOptions('slurm', gpus=4, gpus_per_task=2, dry_run=True, sbatch=given)
    launch(tiny(tmp_path, 'a b c'), options, tmp_path)
    script = capsys.readouterr().out.splitlines()
    for line in ('partition=gpu', 'time=90', 'mem=32GB', 'gres=gpu:2', 'requeue', 'array=0-2%2', 'mail-type=END'):
        assert f'#SBATCH --{line}' in script
    assert [line for line in script if 'cpus-per-task' in line] == ['#SBATCH --cpus-per-task=8']
    assert not list(tmp_path.iterdir())
    with pytest.raises(TPAError, match="time limit '1-00:00' is not a number of minutes"):
        slurm.parameters(LaunchOptions('slurm', sbatch={'time': '1-00:00'}), tmp_path)


def test_missing_sbatch_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('PATH', str(tmp_path))
    with pytest.raises(TPAError, match='sbatch not found'):
        launch(tiny(tmp_path, 'a'), LaunchOptions('slurm'), tmp_path)


@pytest.mark.slow
def test_out_of_time_a_task_goes_on_once(tmp_path: Path, one_node_slurm: None, capsys: pytest.CaptureFixture) -> None:
    late, endless = tasks = tiny(tmp_path, 'late endless')
    hold, _ = late.ask('hold'), endless.ask('hold')
    launch(tasks, LaunchOptions('slurm', wait=False, sbatch={'time': 10, 'signal': 'USR2@50'}), tmp_path)
    job = job_of(capsys.readouterr().out)

    def limit(task: str, minutes: int) -> None:
        subprocess.run(['scontrol', 'update', f'jobid={task}', f'timelimit={minutes}'], check=True)

    # Slurm itself tells both that their minute is nearly over. Not before they have started: they could not listen.
    wait_for(lambda: len(trace(tmp_path)) == 2, 'the tasks did not start')
    limit(job, 1)
    for number, task in enumerate(tasks):
        wait_for(lambda task=task: task.state() is State.INTERRUPTED, 'Slurm did not end the task')
        limit(f'{job}_{number}', 10)
    hold.unlink()
    wait_for(lambda: len(trace(tmp_path)) == 4, 'the tasks were not started again')
    limit(f'{job}_1', 1)
    board = Board(tasks, 'runs')
    with board.bar:
        slurm.watch([job], tmp_path / 'slurm', board)
    assert [task.state() for task in tasks] == [State.DONE, State.FAILED]
    assert 'timed-out too many times' in endless.look()[1]
    assert sorted(labels(tmp_path)) == [*['endless'] * 2, *['late'] * 2]
