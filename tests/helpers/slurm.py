"""A Slurm of one node on the loopback interface: no systemd, no cgroups, no accounting, two made-up GPUs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_DAEMONS = ('munged', 'slurmctld', 'slurmd')
# cred_expire: with the default of two minutes, a requeued job would wait that long.
_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MailProg=/bin/true
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=8000 Gres=gpu:2 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Returns why there can be no Slurm here; None if there can."""
    absent = [name for name in (*_DAEMONS, 'sbatch') if _find(name) is None]
    if absent:
        return f'{", ".join(absent)} not installed (Debian: slurm-wlm and munge)'
    return None if os.geteuid() == 0 else 'only root can start a Slurm'


@contextmanager
def cluster(folder: Path) -> Iterator[Path]:
    """Starts the daemons and ends them. Yields the path of slurm.conf. Args: an empty folder."""
    for name in ('munge', 'state', 'spool', 'log'):
        (folder / name).mkdir(parents=True)
    key, host = folder / 'munge/key', socket.gethostname().partition('.')[0]
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    for number in range(2):
        (folder / f'gpu{number}').symlink_to('/dev/null')
    devices = [f'NodeName={host} Name=gpu File={folder}/gpu{number}\n' for number in range(2)]
    (folder / 'gres.conf').write_text(''.join(devices))
    (folder / 'cgroup.conf').write_text('CgroupPlugin=cgroup/v1\nIgnoreSystemd=yes\n')
    conf = folder / 'slurm.conf'
    conf.write_text(_CONF.format(folder=folder, host=host, ports=_free_ports()))
    munge = [f'--{name}-file={folder}/munge/{name}' for name in ('key', 'pid', 'log', 'seed')]
    with ExitStack() as stack:
        _start(stack, folder, ['munged', '--foreground', '--force', f'--socket={folder}/munge/socket', *munge])
        _wait(lambda: (folder / 'munge/socket').exists(), folder)
        _start(stack, folder, ['slurmctld', '-D', '-c', '-f', str(conf)])
        _start(stack, folder, ['slurmd', '-D', '-f', str(conf)])
        _wait(lambda: _ask('sinfo', '--noheader', '--format=%t', conf=conf) == 'idle', folder)
        yield conf
        _ask('scancel', '--me', conf=conf)
        _wait(lambda: not _ask('squeue', '--noheader', conf=conf), folder)


def _find(name: str) -> str | None:
    return shutil.which(name, path=f'{os.environ["PATH"]}:/usr/sbin:/sbin')


def _free_ports() -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for one in sockets:
            one.bind(('127.0.0.1', 0))
        return [one.getsockname()[1] for one in sockets]


def _start(stack: ExitStack, folder: Path, command: list[str]) -> None:
    log = stack.enter_context((folder / 'log' / f'{command[0]}.log').open('w'))
    process = subprocess.Popen([_find(command[0]), *command[1:]], stdout=log, stderr=log)
    stack.callback(process.wait)
    stack.callback(process.terminate)


def _ask(*command: str, conf: Path) -> str:
    environment = {**os.environ, 'SLURM_CONF': str(conf)}
    return subprocess.run(command, env=environment, capture_output=True, text=True).stdout.strip()


def _wait(condition, folder: Path, patience: float = 60.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        logs = '\n'.join(path.read_text()[-500:] for path in (folder / 'log').iterdir())
        assert time.monotonic() < deadline, f'Slurm is not ready: {logs}'
        time.sleep(0.1)
