"""Submits runs to Slurm as a job array, by submitit."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError

from ..errors import TPAError
from .launch import LOOK_EVERY, Board, note_death
from .run import Task, execute

# Options of the command line that are parameters of submitit under the same name.
_OPTIONS = ('partition', 'account', 'qos', 'time', 'mem', 'constraint')


class SlurmRun(submitit.helpers.Checkpointable):
    """Executes a run as a task of a job array; preempted by Slurm, it is requeued."""

    def __call__(self, task: Task) -> None:
        task.folder.path.mkdir(parents=True, exist_ok=True)
        with task.folder.log.open('ab') as log:
            for descriptor in (1, 2):
                os.dup2(log.fileno(), descriptor)
        execute(task)


def parameters(args: argparse.Namespace) -> dict:
    """Returns submitit's parameters of the job array. Args: of the command line."""
    given = {name: getattr(args, name) for name in _OPTIONS if getattr(args, name) is not None}
    extra = dict(text.split('=', 1) for text in args.slurm)
    return {
        'job_name': f'tpa-{args.experiment[0]}',
        'cpus_per_task': 5,
        'gres': 'gpu:1',
        **({} if args.gpus is None else {'array_parallelism': args.gpus}),
        # srun does not take this over from sbatch since Slurm 22.05.
        'setup': ['export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}'],
        **given,
        'additional_parameters': {'requeue': True, **{key.replace('-', '_'): value for key, value in extra.items()}},
    }


def submit(tasks: Sequence[Task], options: dict, folder: Path, after: Sequence[str] = ()) -> str:
    """Submits one job array with a task per run.

    Args:
        tasks: The runs.
        options: From :func:`parameters`.
        folder: Where submitit's own files go.
        after: Ids of jobs that have to end before.

    Returns:
        The id of the job.
    """
    if shutil.which('sbatch') is None:
        raise TPAError('There is no sbatch on this machine: start this command on one that can submit Slurm jobs.')
    # A run that was too slow for --time would be too slow again.
    executor = submitit.SlurmExecutor(folder, max_num_timeout=0)
    executor.update_parameters(**options, **({'dependency': f'afterany:{":".join(after)}'} if after else {}))
    try:
        first, *_ = executor.map_array(SlurmRun(), tasks)
    except (FailedJobError, FailedSubmissionError) as error:
        raise TPAError(
            f'Slurm refused the job ({str(error).strip()}): change its options, or add one by --slurm.'
        ) from error
    return first.job_id.partition('_')[0]


def watch(jobs: Sequence[str], board: Board) -> None:
    """Shows the progress until all runs have ended. Args: jobs: their ids; board."""
    while board.open and in_queue(jobs):
        time.sleep(LOOK_EVERY)
        board.look()
    board.look()
    for task in board.open:
        if not task.folder.locked():
            note_death(task, f'Slurm job {", ".join(jobs)}')


def in_queue(jobs: Sequence[str]) -> bool:
    """Whether Slurm has any of the jobs waiting or running. This needs no accounting."""
    command = ['squeue', '--noheader', '--format=%A', f'--jobs={",".join(jobs)}']
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        # An unknown job is over; a controller that does not answer may be back soon.
        return 'Invalid job id' not in answer.stderr
    return bool(answer.stdout.strip())
