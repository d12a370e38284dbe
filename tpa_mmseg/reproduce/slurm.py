"""A Slurm job array: one task per run, any of which takes any run that is left."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import TPAError
from ..io import atomic_write

_SCRIPT = """\
#!/usr/bin/env bash
#SBATCH --job-name=tpa-{name}
#SBATCH --array=0-{last}{at_once}
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=5
#SBATCH --output={logs}/%A_%a.log
#SBATCH --requeue
{options}set -euo pipefail
cd {here}
exec {command}
"""


def batch_of_this_job() -> str | None:
    """What a task of a job array works for; None outside of one. A task that was requeued is a new start."""
    job = os.environ.get('SLURM_ARRAY_JOB_ID')
    if job is None:
        return None
    again = os.environ.get('SLURM_RESTART_COUNT', '0')
    return f'slurm-{job}' if again == '0' else f'slurm-{job}-{os.environ.get("SLURM_ARRAY_TASK_ID")}-{again}'


def script(name: str, tasks: int, at_once: int | None, arguments: Sequence[str], logs: Path, options: str = '') -> str:
    """The job array's script.

    Args:
        name: For the queue.
        tasks: Number of runs.
        at_once: How many tasks may run at the same time; None for as many as the cluster lets.
        arguments: Of ``tools/reproduce.py``, for one task.
        logs: Where the tasks' own output goes.
        options: More options of sbatch, such as ``--partition=gpu --time=8:00:00``.
    """
    command = [sys.executable, '-m', 'tpa_tools', 'reproduce', *arguments]
    return _SCRIPT.format(
        name=name,
        last=tasks - 1,
        at_once='' if at_once is None else f'%{at_once}',
        logs=logs.resolve(),
        options=f'#SBATCH {options.strip()}\n' if options.strip() else '',
        here=shlex.quote(os.getcwd()),
        command=shlex.join(command),
    )


def submit(text: str, path: Path) -> str:
    """Writes the script and hands it to Slurm. Returns what Slurm answers."""
    with atomic_write(path, 'w') as file:
        file.write(text)
    if shutil.which('sbatch') is None:
        raise TPAError(f'There is no sbatch on this machine: submit {path} from one that has it.')
    answer = subprocess.run(['sbatch', str(path)], capture_output=True, text=True)
    if answer.returncode:
        raise TPAError(f'sbatch refused {path} ({answer.stderr.strip()}): add what it asks for with --slurm-options.')
    return answer.stdout.strip()
