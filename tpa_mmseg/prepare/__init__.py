"""Preparation of the datasets: from the official archives to the folders that the configs read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import ade20k, cityscapes, coco_object, coco_stuff, context, voc
from .check import Report, check, exists
from .jobs import WORKERS, Job, run
from .layouts import LAYOUTS, Layout, dataset_of
from .output import Output
from .sources import Limits, Sources

# Dataset -> the function that plans which files to make from which.
PLANS: dict[str, Callable[[Sources, str], list[Job]]] = {
    'voc': voc.plan,
    'context': context.plan,
    'coco_stuff': coco_stuff.plan,
    'coco_object': coco_object.plan,
    'cityscapes': cityscapes.plan,
    'ade20k': ade20k.plan,
}


@dataclass(frozen=True)
class Prepared:
    """Outcome of a preparation: the number of test images, of all files, and of the files written now."""

    images: int
    files: int
    written: int


def prepare(
    dataset: str,
    sources: Sequence[str | os.PathLike],
    out: str | os.PathLike,
    workers: int = WORKERS,
    symlink: bool = False,
    train: bool = False,
    limits: Limits | None = None,
) -> Prepared:
    """Prepares a dataset.

    It can be interrupted at any time and resumes where it stopped. It overwrites only files that it wrote itself.

    Args:
        dataset: Name of the dataset or of one of its benchmarks, e.g. ``'voc'`` or ``'voc21'``.
        sources: Archives, unpacked folders, annotation files.
        out: Folder of the dataset.
        workers: Number of threads.
        symlink: Whether to symlink images that are in a folder instead of copying them.
        train: Whether to prepare the training split too.
        limits: The largest files that are read.
    """
    dataset = dataset_of(dataset)
    with Sources(sources, limits) as opened, Output(out) as output:
        jobs = PLANS[dataset](opened, 'val')
        ending = LAYOUTS[dataset].images.partition('{stem}')[2]
        images = sum(job.target.endswith(ending) for job in jobs)
        if train:
            jobs += PLANS[dataset](opened, 'train')
        return Prepared(images, len(jobs), run(jobs, output, workers, symlink))
