"""Ray runs tasks, and starts one again whose process is killed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.helpers import ray
from tests.helpers.tasks import labels, tiny
from tests.launch.test_local import LAUNCH
from tpa_mmseg.errors import TPAError
from tpa_mmseg.launch import LaunchOptions, State, launch


@pytest.mark.slow
def test_two_workers_of_which_one_is_killed(tmp_path: Path) -> None:
    if (reason := ray.missing()) is not None:
        pytest.skip(reason)
    first, killed, bad = tiny(tmp_path, 'first killed bad')
    for task in (first, killed):
        task.ask('meet')
    killed.ask('kill', 'once')
    bad.ask('fail', 'No data.')
    done = ray.python('-c', LAUNCH, tmp_path, 'first killed bad', '{"launcher": "ray", "processes": 2}')
    assert done.returncode == 0, done.stderr
    assert '2 of 3 runs are done, 1 failed' in done.stdout and 'failed: bad: No data.' in done.stderr
    assert sorted(labels(tmp_path)) == ['bad', 'first', 'killed', 'killed']
    assert [task.state() for task in (first, killed, bad)] == [State.DONE, State.DONE, State.FAILED]


def test_missing_ray_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'ray', None)
    monkeypatch.delitem(sys.modules, 'tpa_mmseg.launch.ray', raising=False)
    with pytest.raises(TPAError, match=r"ray is not installed. Install it with: pip install 'tpa_mmseg\[ray\]'"):
        launch(tiny(tmp_path, 'a'), LaunchOptions('ray'), tmp_path)
