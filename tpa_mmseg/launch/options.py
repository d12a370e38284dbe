"""LaunchOptions: where tasks run and how many at a time."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from ..errors import TPAError


@dataclass(frozen=True)
class LaunchOptions:
    """Where tasks run and how many at a time. ``add_launch_options`` of the tools has the same on the command line.

    Args:
        launcher: ``'local'`` for this machine, ``'slurm'`` for a job array, ``'ray'`` for a Ray cluster.
        gpus: Number of GPUs to use at a time. Default: all that there are; on Slurm, as many as it gives.
        processes: Number of tasks at a time if there are no GPUs; not for Slurm.
        gpus_per_task: Number of GPUs of a task, one rank on each. Without GPUs, number of its processes.
        limit: At most so many tasks; 0 for all.
        rerun: Whether to repeat what is done.
        dry_run: Whether to show only what would be started.
        wait: Whether to wait for the job array.
        ray_address: A Ray cluster, e.g. ``'auto'``. Default: one on this machine, which ends with this process.
        sbatch: Options of sbatch by their long names, with underscores.
    """

    launcher: str = 'local'
    gpus: int | None = None
    processes: int = 1
    gpus_per_task: int = 1
    limit: int = 0
    rerun: bool = False
    dry_run: bool = False
    wait: bool = True
    ray_address: str | None = None
    sbatch: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, args: argparse.Namespace) -> LaunchOptions:
        """Returns the options of a command line."""
        given = {one.name: getattr(args, one.name) for one in fields(cls) if one.name != 'sbatch'}
        pairs = (text.split('=', 1) for text in args.slurm)
        return cls(**given, sbatch={key.replace('-', '_'): value for key, value in pairs})

    def places(self, found: int) -> tuple[int, int]:
        """Returns how many tasks fit at a time, and the GPUs of each, 0 without any. Args: number of GPUs there are."""
        gpus = found if self.gpus is None else self.gpus
        if 0 < gpus < self.gpus_per_task:
            raise TPAError(f'{self.gpus_per_task} GPUs per task are more than the {gpus} that can be used here.')
        return (gpus // self.gpus_per_task, self.gpus_per_task) if gpus else (self.processes, 0)
