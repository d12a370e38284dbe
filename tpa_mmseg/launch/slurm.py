"""Tasks as a job array of Slurm, by submitit."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError
from submitit.slurm.slurm import _make_sbatch_string

from ..errors import TPAError
from .board import Board, note_death
from .execute import execute
from .options import LaunchOptions
from .task import Task


def start(groups: Sequence[list[Task]], options: LaunchOptions, folder: Path) -> Callable[[Board], None]:
    """Submits a job array with a task per description for each group, after the one before it.

    Args:
        groups: The descriptions.
        options: Of the launch.
        folder: That of all tasks; submitit's own files go into ``slurm`` there.

    Returns:
        What shows the progress until all tasks have ended.
    """
    if shutil.which('sbatch') is None:
        raise TPAError('sbatch not found. Start this command on a machine that can submit Slurm jobs.')
    # The second attempt has what the first one left, e.g. a bank; a third would be as slow.
    executor, jobs = submitit.SlurmExecutor(folder / 'slurm', max_num_timeout=1), []
    for tasks in filter(None, groups):
        dependency = {'dependency': f'afterany:{":".join(jobs)}'} if jobs else {}
        executor.update_parameters(**parameters(options, folder), **dependency)
        try:
            first, *_ = executor.map_array(SlurmTask(), tasks, [options.gpus_per_task] * len(tasks))
        except (FailedJobError, FailedSubmissionError) as error:
            *_, reason = str(error).strip().splitlines()
            raise TPAError(f'Slurm refused the job ({reason}): change its options, or add one by --slurm.') from error
        jobs.append(first.job_id.partition('_')[0])
    count = f'{sum(map(len, groups))} tasks'
    print(f'Slurm job {", ".join(jobs)}: {count}. They go on if this command is interrupted.', flush=True)
    return partial(watch, jobs, folder / 'slurm')


class SlurmTask(submitit.helpers.Checkpointable):
    """Executes a task of a job array. Preempted or out of time, it is requeued."""

    def __call__(self, task: Task, ranks: int) -> None:
        execute(task, ranks, in_log=True)


def parameters(options: LaunchOptions, folder: Path) -> dict:
    """Returns submitit's parameters of a job array. Args: as for :func:`start`."""
    gpus, name = options.gpus_per_task, f'tpa-{folder.name}'
    defaults = {'job_name': name, 'time': 720, 'cpus_per_task': 5 * gpus, 'gres': f'gpu:{gpus}', 'requeue': True}
    given = {**defaults, **options.sbatch}
    if not str(given['time']).isdigit():
        raise TPAError(f'The time limit {given["time"]!r} is not a number of minutes: give one by --time.')
    return {
        'time': int(given['time']),
        'array_parallelism': 100_000 if options.gpus is None else max(1, options.gpus // gpus),
        # srun does not take this over from sbatch since Slurm 22.05.
        'setup': ['export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}'],
        'additional_parameters': given,
    }


def script(count: int, options: LaunchOptions, folder: Path) -> str:
    """Returns the file that sbatch would get. Args: count of tasks; the rest as for :func:`start`."""
    command = f'{sys.executable} -u -m submitit.core._submit {folder / "slurm"}'
    return _make_sbatch_string(command, folder / 'slurm', map_count=count, **parameters(options, folder))


def watch(jobs: Sequence[str], logs: Path, board: Board) -> None:
    """Shows the progress until all tasks have ended. Args: jobs: their ids; logs: submitit's folder; board."""
    while board.open and in_queue(jobs):
        time.sleep(board.pause)
        board.look()
    board.look()
    for task in board.open:
        note_death(task, f'Slurm job {", ".join(jobs)}', logs)


def in_queue(jobs: Sequence[str]) -> bool:
    """Whether Slurm has any of the jobs waiting or running. This needs no accounting."""
    command = ['squeue', '--noheader', '--format=%A', f'--jobs={",".join(jobs)}']
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        # An unknown job is over; a controller that does not answer may be back soon.
        return 'Invalid job id' not in answer.stderr
    return bool(answer.stdout.strip())
