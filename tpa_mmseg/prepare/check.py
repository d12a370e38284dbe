"""Checks a prepared dataset: are all files there and consistent, and if not, how to fix it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..images import UnreadableImage, open_image
from . import labels
from .jobs import WORKERS, in_parallel
from .layouts import IGNORED, LAYOUTS, Layout, dataset_of

_PREPARE = 'prepare the dataset'
_ADD = 'rerun the preparation; existing files are kept'
_REPLACE = 'delete these files and rerun the preparation'


@dataclass(frozen=True)
class Finding:
    """A problem of a dataset.

    Args:
        what: The kind of problem.
        count: Number of cases.
        first: The first case.
        fix: How to fix it.
    """

    what: str
    count: int
    first: str
    fix: str


@dataclass
class Report:
    """Result of a check.

    Args:
        dataset: A key of :data:`~tpa_mmseg.prepare.layouts.LAYOUTS`.
        folder: Folder of the dataset.
        images: Number of test images.
        labels: Number of test images that have a label.
        origin: The list of images that is in use, if there are several.
        findings: The problems.
    """

    dataset: str
    folder: Path
    images: int = 0
    labels: int = 0
    origin: str = ''
    findings: list[Finding] = field(default_factory=list)

    def add(self, what: str, cases: Iterable[str], fix: str) -> None:
        """Adds a finding if there are any cases."""
        cases = list(cases)
        if cases:
            self.findings.append(Finding(what, len(cases), cases[0], fix))


def check(dataset: str, folder: str | os.PathLike, workers: int = WORKERS) -> Report:
    """Reads every image and label of the test split.

    Args:
        dataset: Name of the dataset or of one of its benchmarks.
        folder: Folder of the dataset.
        workers: Number of threads.
    """
    dataset = dataset_of(dataset)
    layout, report = LAYOUTS[dataset], Report(dataset, Path(folder))
    if not report.folder.is_dir():
        report.add('folder missing', [str(report.folder)], _PREPARE)
        return report
    listed = list(_listed(layout, report))
    images = {stem: (report.folder / layout.image('val', stem)).is_file() for stem in listed}
    pairs = {stem: (report.folder / layout.label('val', stem)).is_file() for stem in listed if images[stem]}
    report.images, report.labels = sum(images.values()), sum(pairs.values())
    report.origin = layout.counts.get(len(listed), '')
    if len(listed) not in layout.counts:
        expected = ' or '.join(map(str, layout.counts))
        report.add('number of images', [f'{len(listed)} instead of {expected}'], _ADD)
    report.add('image missing', (layout.image('val', stem) for stem, there in images.items() if not there), _ADD)
    report.add('label missing', (layout.label('val', stem) for stem, there in pairs.items() if not there), _ADD)
    _check_content(layout, [stem for stem, there in pairs.items() if there], workers, report)
    return report


def exists(dataset: str, folder: str | os.PathLike) -> bool:
    """Returns whether the preparation was started: whether the list of images, or any label, exists."""
    layout = LAYOUTS[dataset_of(dataset)]
    if layout.list is not None:
        return (Path(folder) / layout.list_file('val')).is_file()
    return bool(_names(Path(folder), layout.label('val', '{stem}')))


def _listed(layout: Layout, report: Report) -> Iterator[str]:
    """Yields the names of the test images, from their list, or from the folder if there is no list."""
    if layout.list is not None:
        path = report.folder / layout.list_file('val')
        if path.is_file():
            yield from path.read_text(encoding='utf-8').split()
        else:
            report.add('list of images missing', [layout.list_file('val')], _PREPARE)
        return
    found = _names(report.folder, layout.image('val', '{stem}'))
    alone = _names(report.folder, layout.label('val', '{stem}')) - found
    report.add('label without image', (layout.label('val', stem) for stem in sorted(alone)), _ADD)
    yield from sorted(found)


def _names(folder: Path, pattern: str) -> set[str]:
    """Returns the part of file paths that ``{stem}`` stands for; it may include a folder."""
    beginning, _, ending = pattern.partition('{stem}')
    files = ((folder / beginning).rglob(f'*{ending}')) if (folder / beginning).is_dir() else ()
    return {file.relative_to(folder / beginning).as_posix().removesuffix(ending) for file in files}


def _check_content(layout: Layout, stems: list[str], workers: int, report: Report) -> None:
    """Reads every image and its label, and compares the two."""
    allowed = np.zeros(256, dtype=bool)
    allowed[: layout.values] = True
    allowed[IGNORED] |= layout.ignored
    expected = f'0 to {layout.values - 1}' + (f' and {IGNORED}' if layout.ignored else '')

    def look(stem: str) -> tuple[str, str] | None:
        image, label = layout.image('val', stem), layout.label('val', stem)
        try:
            with open_image(report.folder / image, image) as opened:
                opened.load()
                size = opened.size
        except UnreadableImage as error:
            return 'image unreadable', f'{image} ({error.__cause__})'
        try:
            pixels = labels.read((report.folder / label).read_bytes())
        except (OSError, ValueError) as error:
            return 'label unreadable', f'{label} {error}'
        if pixels.shape != size[::-1]:
            return 'sizes differ', f'{label} is {pixels.shape[1]} x {pixels.shape[0]}, its image {size[0]} x {size[1]}'
        strange = np.flatnonzero((np.bincount(pixels.ravel(), minlength=256) > 0) & ~allowed)
        if len(strange):
            return 'label out of range', f'{label} contains {strange[-1]}, expected {expected}'
        return None

    cases: dict[str, list[str]] = {}
    arguments = ((stem,) for stem in stems)
    for case in in_parallel(look, arguments, len(stems), workers, f'Checking {layout.title}'):
        if case is not None:
            cases.setdefault(case[0], []).append(case[1])
    for what, found in cases.items():
        report.add(what, found, _REPLACE)
