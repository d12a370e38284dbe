"""Figures of experiments whose variants lie on an axis: k, the share of the pool, the overlap, repetition."""

from __future__ import annotations

from ..results import RepetitionCurve
from .document import Figure
from .plot import Axis, Plot, Point, Series
from .subject import Entry, Subject, entries, grouped

_GAIN = Axis('gain (mIoU)', include=(0.0,))
_SOURCES = {'labels': 'by labels', 'anchors': 'by anchors'}


def gain_figure(subject: Subject, name: str, title: str, x: Axis, factor: float = 1.0) -> tuple[Figure, ...]:
    """Gain against the variants' values, a line for each benchmark; nothing where nothing has run.

    Args:
        subject: The experiment.
        name: Name of the figure's file.
        title: What it shows.
        x: The axis of the values.
        factor: What values are multiplied with, 100 for shares in percent.
    """
    series = []
    for style, (benchmark, found) in enumerate(_by_benchmark(subject).items()):
        ours = [(entry.found.value, entry.gain, entry) for entry in found if entry.gain is not None]
        points = sorted((value, gain, entry.title) for value, gain, entry in ours if value is not None)
        if not points:
            continue
        series.append(Series(benchmark, _points(points, benchmark, factor), style))
        paper = {entry.key: entry.paper.gain for entry in found}
        printed = sorted((v, paper[e.key], e.title) for v, _, e in ours if v is not None and paper[e.key] is not None)
        # A single number of the paper's, such as that of the whole pool, is in the table; it makes no line.
        if len(printed) > 1:
            label = f'{benchmark}, paper'
            series.append(Series(label, _points(printed, label, factor), style, dashed=True))
    if not series:
        return ()
    return (Figure(name, title, Plot(title, x, _GAIN, tuple(series))),)


def _by_benchmark(subject: Subject) -> dict[str, list[Entry]]:
    return grouped(entries(subject.views), lambda entry: subject.benchmark(entry.view.run))


def _points(values: list[tuple[float, float, str]], label: str, factor: float) -> tuple[Point, ...]:
    return tuple(Point(factor * x, y, f'{label}, {title}: {y:+.2f}') for x, y, title in values)


def repetition_figures(subject: Subject) -> tuple[Figure, ...]:
    """Share of repeated classes against the size of the pool, a plot for each benchmark."""
    figures = []
    for view in subject.done:
        benchmark = subject.benchmark(view.run)
        title = f'{benchmark}: classes seen again'
        series = [one for curve in view.result.repetition for one in _repetition_series(curve)]
        if series:
            x = Axis('images in the pool', log=True)
            y = Axis('share of the classes', include=(0.0, 100.0), unit=' %')
            figures.append(Figure(f'repetition-{view.run.benchmark}', title, Plot(title, x, y, tuple(series))))
    return tuple(figures)


def _repetition_series(curve: RepetitionCurve) -> list[Series]:
    found = []
    for style, (times, shares) in enumerate(curve.at_least.items()):
        name = f'≥ {times}, {_SOURCES.get(curve.source, curve.source)}'
        points = tuple(
            Point(size, 100 * share, f'{100 * share:.0f} % of the classes in at least {times} of {size} images')
            for size, share in zip(curve.sizes, shares, strict=True)
        )
        found.append(Series(name, points, style, dashed=curve.source != 'labels'))
    return found
