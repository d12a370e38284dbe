"""Starts many tasks on one machine, on Slurm or on Ray: runs of experiments, shards of images, shards of a pool."""

from __future__ import annotations

from .folder import Progress, TaskFolder
from .launching import launch
from .options import LaunchOptions
from .task import State, Task

__all__ = ['LaunchOptions', 'Progress', 'State', 'Task', 'TaskFolder', 'launch']
