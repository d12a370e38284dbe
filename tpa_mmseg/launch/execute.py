"""Executes one task, in a process that is started for it."""

from __future__ import annotations

import tempfile
import time
import traceback

import torch.distributed as dist
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, record
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from ..engine.distributed import init_distributed
from ..errors import TPAError, user_message
from .folder import Progress
from .task import State, Task

# Seconds to wait for the lock of a task: a look at its state takes it for a moment.
_PATIENCE = 5.0


def execute(task: Task, ranks: int = 1) -> None:
    """Executes a task, unless it is done or another process works on it. An error is noted in the task's folder.

    Args:
        task: The task.
        ranks: Number of processes that share its work, if it can be shared.
    """
    try:
        lock = task.folder.lock(_PATIENCE).acquire()
    except TimeoutError:
        print(f'Another process works on {task.name}.')
        return
    with lock:
        if task.state() is not State.DONE:
            _attempt(task, ranks if task.shared else 1)


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
            raise TPAError(message if isinstance(message, str) else message['message']) from error


@record
def _rank(task: Task) -> None:
    init_distributed('pytorch')
    try:
        task.work()
    finally:
        dist.destroy_process_group()
