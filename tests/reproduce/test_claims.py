"""A run belongs to one process at a time, and a dead process's claim is recognized."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from tpa_mmseg.reproduce import claims
from tpa_mmseg.reproduce.claims import Heartbeat, claim, last_claim


def _try(folder: Path, start, won) -> None:
    start.wait()
    if claim(folder, 'batch', None) is not None:
        with won.get_lock():
            won.value += 1


def test_of_many_processes_one_gets_the_run(tmp_path: Path) -> None:
    context = multiprocessing.get_context('fork')
    for turn in range(2):
        start, won = context.Event(), context.Value('i', 0)
        processes = [context.Process(target=_try, args=(tmp_path / str(turn), start, won)) for _ in range(6)]
        for process in processes:
            process.start()
        start.set()
        for process in processes:
            process.join()
        assert won.value == 1
        assert [path.name for path in (tmp_path / str(turn)).iterdir()] == ['claim.1']


def test_own_claim_is_alive(tmp_path: Path) -> None:
    assert claim(tmp_path, 'batch', None).alive()
    assert last_claim(tmp_path).alive()


def test_claim_of_a_process_that_is_gone_is_dead(tmp_path: Path) -> None:
    process = multiprocessing.get_context('fork').Process(target=claim, args=(tmp_path, 'batch', None))
    process.start()
    process.join()
    assert last_claim(tmp_path).pid == process.pid != os.getpid()
    assert not last_claim(tmp_path).alive()


def test_claim_of_an_earlier_process_with_the_same_number_is_dead(tmp_path: Path) -> None:
    claim(tmp_path, 'batch', None)
    _rewrite(tmp_path / 'claim.1', born='1')
    assert not last_claim(tmp_path).alive()


@pytest.mark.parametrize('silent, alive', [(0, True), (claims.SILENCE - 60, True), (claims.SILENCE + 60, False)])
def test_claim_of_another_machine_lives_as_long_as_it_is_touched(tmp_path: Path, silent: float, alive: bool) -> None:
    claim(tmp_path, 'batch', None)
    _rewrite(tmp_path / 'claim.1', machine='elsewhere')
    then = time.time() - silent
    os.utime(tmp_path / 'claim.1', (then, then))
    assert last_claim(tmp_path).alive() is alive


def test_requeued_task_knows_that_its_earlier_start_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_task(monkeypatch, '3')
    claim(tmp_path, 'batch', None)
    _rewrite(tmp_path / 'claim.1', machine='elsewhere')
    assert last_claim(tmp_path).alive()
    start_task(monkeypatch, '4', restarts=1)
    assert last_claim(tmp_path).alive()
    start_task(monkeypatch, '3', restarts=1)
    assert not last_claim(tmp_path).alive()


def start_task(monkeypatch: pytest.MonkeyPatch, number: str, restarts: int = 0) -> None:
    """Makes this process one of a Slurm job array."""
    monkeypatch.setenv('SLURM_ARRAY_JOB_ID', '17')
    monkeypatch.setenv('SLURM_ARRAY_TASK_ID', number)
    monkeypatch.setenv('SLURM_RESTART_COUNT', str(restarts))


def test_of_two_who_find_a_claim_dead_one_takes_it_over(tmp_path: Path) -> None:
    dead = claim(tmp_path, 'first', None)
    taken = claim(tmp_path, 'second', dead)
    assert taken.number == 2
    assert claim(tmp_path, 'third', dead) is None
    assert not dead.is_latest()
    assert taken.is_latest()


def test_disk_without_hard_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_) -> None:
        raise OSError(errno.ENOTSUP, 'no hard links here')

    monkeypatch.setattr(os, 'link', refuse)
    assert claim(tmp_path, 'one', None).alive()
    assert claim(tmp_path, 'two', None) is None
    assert last_claim(tmp_path).batch == 'one'
    assert [path.name for path in tmp_path.iterdir()] == ['claim.1']


def test_claim_that_is_being_written_counts_as_alive(tmp_path: Path) -> None:
    (tmp_path / 'claim.1').touch()
    assert last_claim(tmp_path).alive()


def test_heartbeat_touches_the_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, 'BEAT', 0.01)
    taken = claim(tmp_path, 'batch', None)
    os.utime(taken.path, (0, 0))
    with Heartbeat(taken):
        deadline = time.monotonic() + 10
        while taken.path.stat().st_mtime == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert taken.path.stat().st_mtime > 0


def test_heartbeat_goes_on_after_an_error_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, 'BEAT', 0.01)
    taken, original, failures = claim(tmp_path, 'batch', None), os.utime, iter([errno.ESTALE, errno.EIO])

    def fail_twice(path: Path) -> None:
        if number := next(failures, None):
            raise OSError(number, 'the disk is away')
        original(path)

    os.utime(taken.path, (0, 0))
    monkeypatch.setattr(os, 'utime', fail_twice)
    with Heartbeat(taken):
        deadline = time.monotonic() + 10
        while taken.path.stat().st_mtime == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert taken.path.stat().st_mtime > 0


def _rewrite(path: Path, **changes) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}), 'utf-8')
