"""Bulk work: banks from and labels for any number of images, in shards, on one machine, on Slurm or on Ray."""

from .job import build_bank, segment
from .output import mask_of
from .shard import BulkJob
from .source import list_parts, sample
