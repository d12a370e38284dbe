"""Ray runs tasks, and starts one again whose process is killed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.helpers.tasks import labels, tiny
from tests.helpers.world import environment
from tests.launch.test_local import LAUNCH
from tpa_mmseg.errors import TPAError
from tpa_mmseg.launch import LaunchOptions, State, launch

# A network of its own: Ray does not stay on the loopback interface.
NETWORK = 'ip link set lo up && ip address add 198.51.100.1/32 dev lo && exec "$@"'


def missing() -> str | None:
    """Returns why there can be no Ray here; None if there can."""
    if importlib.util.find_spec('ray') is None:
        return 'ray is not installed'
    namespace = shutil.which('unshare') and shutil.which('ip') and subprocess.run(['unshare', '-n', 'true']).returncode
    return None if namespace == 0 else 'there is no network namespace here (unshare -n, ip)'


@pytest.mark.slow
def test_two_workers_of_which_one_is_killed(tmp_path: Path) -> None:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    first, killed, bad = tiny(tmp_path, 'first killed bad')
    for task in (first, killed):
        task.ask('meet')
    killed.ask('kill', 'once')
    bad.ask('fail', 'No data.')
    command = [sys.executable, '-c', LAUNCH, str(tmp_path), 'first killed bad', '{"launcher": "ray", "processes": 2}']
    # Ray keeps sockets in its folder, so its path must be short, and leaves a file at home.
    with tempfile.TemporaryDirectory(prefix='ray') as folder:
        done = subprocess.run(
            ['unshare', '-n', 'sh', '-c', NETWORK, 'sh', *command],
            env={**environment(), 'HOME': folder, 'RAY_TMPDIR': folder, 'RAY_USAGE_STATS_ENABLED': '0'},
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, done.stderr
    assert '2 of 3 runs are done, 1 failed' in done.stdout and 'failed: bad: No data.' in done.stderr
    assert sorted(labels(tmp_path)) == ['bad', 'first', 'killed', 'killed']
    assert [task.state() for task in (first, killed, bad)] == [State.DONE, State.DONE, State.FAILED]


def test_missing_ray_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'ray', None)
    monkeypatch.delitem(sys.modules, 'tpa_mmseg.launch.ray_slots', raising=False)
    with pytest.raises(TPAError, match=r"ray is not installed. Install it with: pip install 'tpa_mmseg\[ray\]'"):
        launch(tiny(tmp_path, 'a'), LaunchOptions('ray'), tmp_path)
