"""Looks a prepared dataset over: is everything there, does it fit together, and if not, what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from . import labels
from .jobs import WORKERS, in_parallel
from .layouts import IGNORED, LAYOUTS, Layout

_PREPARE = 'prepare it'
_ADD = 'prepare it again: what is there is kept'
_REPLACE = 'delete these files and prepare it again'


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Args:
        what: What it is.
        count: How often.
        first: The first case.
        fix: What to do.
    """

    what: str
    count: int
    first: str
    fix: str


@dataclass
class Report:
    """What a dataset is like.

    Args:
        dataset: Its key in :data:`~tpa_mmseg.prepare.layouts.LAYOUTS`.
        folder: Where it should be.
        images: Number of its test images.
        labels: Number of those that have a label.
        origin: Which list of images is in use, where there are several.
        findings: What is wrong.
    """

    dataset: str
    folder: Path
    images: int = 0
    labels: int = 0
    origin: str = ''
    findings: list[Finding] = field(default_factory=list)

    def note(self, what: str, cases: Iterable[str], fix: str) -> None:
        """Adds a finding if there is any case of it."""
        cases = list(cases)
        if cases:
            self.findings.append(Finding(what, len(cases), cases[0], fix))


def check(dataset: str, folder: str | os.PathLike, workers: int = WORKERS) -> Report:
    """Looks at every image and label of the test split.

    Args:
        dataset: A key of :data:`~tpa_mmseg.prepare.layouts.LAYOUTS`.
        folder: The dataset's folder.
        workers: Number of threads.
    """
    layout, report = LAYOUTS[dataset], Report(dataset, Path(folder))
    if not report.folder.is_dir():
        report.note('folder missing', [str(report.folder)], _PREPARE)
        return report
    wanted = list(_wanted(layout, report))
    images = {stem: (report.folder / layout.image('val', stem)).is_file() for stem in wanted}
    pairs = {stem: (report.folder / layout.label('val', stem)).is_file() for stem in wanted if images[stem]}
    report.images, report.labels = sum(images.values()), sum(pairs.values())
    report.origin = layout.counts.get(len(wanted), '')
    if len(wanted) not in layout.counts:
        expected = ' or '.join(map(str, layout.counts))
        report.note('number of images', [f'{len(wanted)} instead of {expected}'], _ADD)
    report.note('image missing', (layout.image('val', stem) for stem, there in images.items() if not there), _ADD)
    report.note('label missing', (layout.label('val', stem) for stem, there in pairs.items() if not there), _ADD)
    _look_inside(layout, [stem for stem, there in pairs.items() if there], workers, report)
    return report


def is_there(dataset: str, folder: str | os.PathLike) -> bool:
    """Whether anyone has begun to prepare a dataset: there is its list, or one of its labels."""
    layout = LAYOUTS[dataset]
    if layout.list is not None:
        return (Path(folder) / layout.list_file('val')).is_file()
    return bool(_names(Path(folder), layout.label('val', '{stem}')))


def _wanted(layout: Layout, report: Report) -> Iterator[str]:
    """The names of the test images, from their list, or from the folder where that is the list."""
    if layout.list is not None:
        path = report.folder / layout.list_file('val')
        if path.is_file():
            yield from path.read_text(encoding='utf-8').split()
        else:
            report.note('list of images missing', [layout.list_file('val')], _PREPARE)
        return
    found = _names(report.folder, layout.image('val', '{stem}'))
    alone = _names(report.folder, layout.label('val', '{stem}')) - found
    report.note('label without image', (layout.label('val', stem) for stem in sorted(alone)), _ADD)
    yield from sorted(found)


def _names(folder: Path, pattern: str) -> set[str]:
    """What stands for ``{stem}`` in the paths of files; it may include a folder."""
    beginning, _, ending = pattern.partition('{stem}')
    files = ((folder / beginning).rglob(f'*{ending}')) if (folder / beginning).is_dir() else ()
    return {file.relative_to(folder / beginning).as_posix().removesuffix(ending) for file in files}


def _look_inside(layout: Layout, stems: list[str], workers: int, report: Report) -> None:
    """Reads every image and its label, and compares the two."""
    allowed = np.zeros(256, dtype=bool)
    allowed[: layout.values] = True
    allowed[IGNORED] |= layout.ignored
    may = f'0 to {layout.values - 1}' + (f' and {IGNORED}' if layout.ignored else '')

    def look(stem: str) -> tuple[str, str] | None:
        image, label = layout.image('val', stem), layout.label('val', stem)
        try:
            with Image.open(report.folder / image) as picture:
                picture.load()
                size = picture.size
        except (OSError, SyntaxError, ValueError) as error:
            return 'image unreadable', f'{image} ({error})'
        try:
            pixels = labels.read((report.folder / label).read_bytes())
        except (OSError, ValueError) as error:
            return 'label unreadable', f'{label} {error}'
        if pixels.shape != size[::-1]:
            return 'sizes differ', f'{label} is {pixels.shape[1]} x {pixels.shape[0]}, its image {size[0]} x {size[1]}'
        strange = np.flatnonzero((np.bincount(pixels.ravel(), minlength=256) > 0) & ~allowed)
        return ('label out of range', f'{label} holds {strange[-1]}, and may hold {may}') if len(strange) else None

    cases: dict[str, list[str]] = {}
    arguments = ((stem,) for stem in stems)
    for case in in_parallel(look, arguments, len(stems), workers, f'Checking {layout.title}'):
        if case is not None:
            cases.setdefault(case[0], []).append(case[1])
    for what, found in cases.items():
        report.note(what, found, _REPLACE)
