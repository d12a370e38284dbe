"""Executes one task, in a process that is started for it."""

from __future__ import annotations

import os
import tempfile
import time
import traceback

import torch.distributed as dist
from filelock import Timeout
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from ..engine.distributed import init_distributed
from ..errors import TPAError, user_message
from .task import Progress, State, Task

# Seconds to wait for the lock of a task: a look at its state takes it for a moment.
_PATIENCE = 5.0


def execute(task: Task, ranks: int = 1, in_log: bool = False) -> None:
    """Executes a task, unless it is done or another process works on it. An error is noted in the task's folder.

    Args:
        task: The task.
        ranks: Number of processes that share its work, if it can be shared.
        in_log: Whether to make the task's log the output of this process.
    """
    if in_log:
        task.folder.path.mkdir(parents=True, exist_ok=True)
        with task.folder.log.open('ab') as log:
            for descriptor in (1, 2):
                os.dup2(log.fileno(), descriptor)
    try:
        with task.folder.lock(_PATIENCE):
            if task.state() is not State.DONE:
                _attempt(task, ranks if task.shared else 1)
    except Timeout:
        print(f'Another process works on {task.name}.')


def _attempt(task: Task, ranks: int) -> None:
    task.folder.note(Progress())
    print(f'{time.strftime("%Y-%m-%d %H:%M:%S")} {task.name}', flush=True)
    try:
        if ranks > 1:
            _work_together(task, ranks)
        else:
            task.work()
        if not task.finished():
            raise TPAError(f'{task.name} ended without its output; {task.folder.log} may say more.')
        print(f'{time.strftime("%Y-%m-%d %H:%M:%S")} done', flush=True)
    except Exception as error:
        traceback.print_exc()
        task.folder.note(Progress(error=user_message(error)))


def _work_together(task: Task, ranks: int) -> None:
    """Does a task's work on several ranks, as ``torchrun --standalone`` does. They end with this process."""
    with tempfile.TemporaryDirectory() as folder:
        logs, port = DefaultLogsSpecs(log_dir=folder), 'localhost:0'  # a free one
        place = {'rdzv_backend': 'c10d', 'rdzv_endpoint': port, 'local_addr': 'localhost'}
        config = LaunchConfig(1, 1, ranks, start_method='spawn', max_restarts=0, logs_specs=logs, **place)
        try:
            elastic_launch(config, _rank)(task)
        except ChildFailedError as error:
            message = error.get_first_failure()[1].message
            text = message if isinstance(message, str) else message['message']
            raise TPAError(text.removeprefix('TPAError: ')) from error


def _rank(task: Task) -> None:
    init_distributed('pytorch')
    task.work()
    # Not after an error: the other ranks would tell of a lost connection before this one has told its reason.
    dist.destroy_process_group()
