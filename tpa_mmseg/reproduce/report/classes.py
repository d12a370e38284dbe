"""Which classes gain: against how well the host knew them, and against how many pixels they have."""

from __future__ import annotations

from ..folders import RunView, State
from ..results import ClassScore, VariantResult
from .document import Figure, Table, number, plain_rows, word
from .plot import Axis, Plot, Point, Series
from .subject import Subject

# Experiments that score TPA as the config has it, so that any of them can tell about classes.
_SOURCES = ('main', 'components', 'bank-size')
_GAIN = Axis('gain (IoU)', include=(0.0,))
# Colors of gain and loss.
_GAINS, _LOSSES = 0, 1


def scored_classes(subject: Subject) -> dict[str, tuple[RunView, VariantResult]]:
    """Benchmark -> the run of the host of the ablations that is done, and TPA in it."""
    found: dict[str, tuple[RunView, VariantResult]] = {}
    for view in class_views(subject):
        full = view.result.variant('full') if view.state is State.DONE else None
        if full is not None and full.per_class:
            found.setdefault(view.run.benchmark, (view, full))
    return {name: found[name] for name in subject.suite.benchmarks if name in found}


def class_views(subject: Subject) -> list[RunView]:
    """The runs that can tell about the classes of the host of the ablations, the best source first."""
    return [
        view
        for experiment in _SOURCES
        for view in subject.everything
        if view.run.experiment == experiment and view.run.row == subject.suite.ablation
    ]


def class_figures(subject: Subject) -> tuple[Figure, ...]:
    """Two plots for each benchmark."""
    figures = []
    for benchmark, (view, full) in scored_classes(subject).items():
        name = subject.benchmark(view.run)
        scored = [entry for entry in full.per_class if entry.gain is not None and entry.host_iou is not None]
        if not scored:
            continue
        for axis, x, label in (
            ('base', Axis('IoU of the host alone', unit=' %'), 'base IoU'),
            ('support', Axis('pixels of the class in the truth', log=True), 'support'),
        ):
            title = f'{name}: gain of each class against {label}'
            points = [(_place(entry, axis), entry) for entry in scored]
            series = _series([(place, entry) for place, entry in points if place is not None])
            if series:
                figures.append(Figure(f'classes-{benchmark}-{axis}', title, Plot(title, x, _GAIN, series)))
    return tuple(figures)


def _place(entry: ClassScore, axis: str) -> float | None:
    return entry.host_iou if axis == 'base' else entry.support or None


def _series(points: list[tuple[float, ClassScore]]) -> tuple[Series, ...]:
    halves = (
        ('gains', _GAINS, [point for point in points if point[1].gain >= 0]),
        ('loses', _LOSSES, [point for point in points if point[1].gain < 0]),
    )
    return tuple(
        Series(f'{name} ({len(half)} classes)', tuple(Point(x, e.gain, _hover(e)) for x, e in half), style, line=False)
        for name, style, half in halves
        if half
    )


def _hover(entry: ClassScore) -> str:
    return f'{entry.name}: {entry.host_iou:.1f} → {entry.tpa_iou:.1f} ({entry.gain:+.1f}), {entry.support:,} pixels'


def class_tables(subject: Subject) -> tuple[Table, ...]:
    """Every class of each benchmark."""
    tables = []
    columns = ('Class', 'Base IoU', 'TPA IoU', 'Gain', 'Support', 'Anchors')
    for benchmark, (view, full) in scored_classes(subject).items():
        rows = []
        for entry in full.per_class:
            scores = number(entry.host_iou), number(entry.tpa_iou), number(entry.gain, signed=True)
            counts = number(entry.support, digits=0), number(entry.anchors, digits=0)
            rows.append((word(entry.name), *scores, *counts))
        caption = f'{subject.benchmark(view.run)}: every class'
        tables.append(Table(f'classes-{benchmark}', caption, columns, plain_rows(rows), csv=True, folded=True))
    return tuple(tables)
