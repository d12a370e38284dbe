"""Preparation of the datasets: from the archives as the sites ship them to the folders that the configs read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import ade20k, cityscapes, coco_object, coco_stuff, context, voc
from .check import Report, check, is_there
from .jobs import WORKERS, Job, run
from .layouts import LAYOUTS, Layout
from .output import Output
from .sources import Sources

__all__ = ['LAYOUTS', 'PLANS', 'WORKERS', 'Layout', 'Report', 'Result', 'check', 'is_there', 'prepare']

# Dataset -> the function that says which files to make from which.
PLANS: dict[str, Callable[[Sources, str], list[Job]]] = {
    'voc': voc.plan,
    'context': context.plan,
    'coco_stuff': coco_stuff.plan,
    'coco_object': coco_object.plan,
    'cityscapes': cityscapes.plan,
    'ade20k': ade20k.plan,
}


@dataclass(frozen=True)
class Result:
    """What a preparation comes to: the number of test images, of all files, and of those written just now."""

    images: int
    files: int
    written: int


def prepare(
    dataset: str,
    sources: Sequence[str | os.PathLike],
    out: str | os.PathLike,
    workers: int = WORKERS,
    link: bool = False,
    train: bool = False,
) -> Result:
    """Makes a dataset.

    It may be interrupted at any time and goes on where it stopped. It overwrites nothing that it did not write.

    Args:
        dataset: A key of :data:`PLANS`.
        sources: Archives, unpacked folders, annotation files.
        out: Its folder.
        workers: Number of threads.
        link: Make links to images in a folder instead of copies.
        train: Make the training split as well.
    """
    with Sources(sources) as opened, Output(out) as output:
        jobs = PLANS[dataset](opened, 'val')
        ending = LAYOUTS[dataset].images.partition('{stem}')[2]
        images = sum(job.target.endswith(ending) for job in jobs)
        if train:
            jobs += PLANS[dataset](opened, 'train')
        return Result(images, len(jobs), run(jobs, output, workers, link))
