"""Starts many tasks on one machine, on Slurm or on Ray: runs of experiments, shards of images, shards of a pool."""

from .launching import launch
from .options import LaunchOptions
from .task import Progress, State, Task, TaskFolder
