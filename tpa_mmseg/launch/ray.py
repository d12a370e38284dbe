"""Tasks on a Ray cluster: each a remote function in a process of its own, which Ray starts again if it is killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import ray

from .board import Board
from .execute import execute
from .local import run_in_slots
from .options import LaunchOptions
from .task import Task


def start(groups: Sequence[list[Task]], options: LaunchOptions, folder: Path) -> Callable[[Board], None]:
    """Joins or starts a cluster. Returns what executes tasks in it: as many at a time as its GPUs allow, or as asked.

    Args: as for :func:`.local.start`.
    """
    if not ray.is_initialized():
        ray.init(options.ray_address or 'local', include_dashboard=False, log_to_driver=False)
    places, gpus = options.places(int(ray.cluster_resources().get('GPU', 0)))
    # A worker would keep the GPU's memory for its next task.
    remote = ray.remote(num_gpus=gpus, max_calls=1)(execute)

    def slot(task: Task) -> str | None:
        try:
            ray.get(remote.remote(task, options.gpus_per_task, in_log=True))
        except ray.exceptions.RayError as error:
            return f'Ray: {str(error).strip().splitlines()[0]}'
        return None

    return partial(run_in_slots, groups, [[slot] * places, [slot]])
