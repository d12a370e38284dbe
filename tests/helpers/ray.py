"""Ray for tests, in a network of its own: it does not stay on the loopback interface."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile

from tests.helpers.world import ROOT, environment

_NETWORK = 'ip link set lo up && ip address add 198.51.100.1/32 dev lo && exec "$@"'


def missing() -> str | None:
    """Returns why there can be no Ray here; None if there can."""
    if importlib.util.find_spec('ray') is None:
        return 'ray is not installed'
    namespace = shutil.which('unshare') and shutil.which('ip') and subprocess.run(['unshare', '-n', 'true']).returncode
    return None if namespace == 0 else 'there is no network namespace here (unshare -n, ip)'


def python(*args: object) -> subprocess.CompletedProcess:
    """Runs Python with some arguments where it can start a Ray."""
    command = ['unshare', '-n', 'sh', '-c', _NETWORK, 'sh', sys.executable, *map(str, args)]
    # Ray keeps sockets in its folder, so its path must be short, and leaves a file at home.
    with tempfile.TemporaryDirectory(prefix='ray') as folder:
        own = {'HOME': folder, 'RAY_TMPDIR': folder, 'RAY_USAGE_STATS_ENABLED': '0'}
        variables = {**environment(), **own}
        return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=600)
