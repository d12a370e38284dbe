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
    slots = [RaySlot(gpus, options.gpus_per_task) for _ in range(places)]
    return partial(run_in_slots, groups, [slots, slots[:1]])


class RaySlot:
    """One task at a time somewhere in the cluster. Args: gpus per task, 0 for none; ranks per task."""

    def __init__(self, gpus: int, ranks: int) -> None:
        # A worker would keep the GPU's memory for its next task.
        self._remote = ray.remote(num_gpus=gpus, max_calls=1)(execute)
        self._ranks, self._reference = ranks, None

    def __call__(self, task: Task) -> str | None:
        self._reference = self._remote.remote(task, self._ranks, in_log=True)
        try:
            ray.get(self._reference)
        except ray.exceptions.RayError as error:
            return f'Ray: {str(error).strip().splitlines()[0]}'
        return None

    def stop(self) -> None:
        if self._reference is not None:
            ray.cancel(self._reference, force=True)
