"""The table of costs: times with their spread, sizes, and the paper's columns."""

from __future__ import annotations

from ..reference import cost_reference
from ..results import Cost, Timing
from .document import Cell, Table, number, pending, plain_rows, unmeasured, word
from .subject import Subject, grouped

_STEPS = {
    'clip': 'CLIP',
    'host': 'Host',
    'encoder': 'Encoder',
    'total': 'Host + encoder',
    'bank_encoder_pass': 'Encoder for the bank',
    'bank_update': 'Bank update',
    'feature_transfer': 'Transfer of features',
    'lookup': 'Lookup',
    'decode': 'Labels of host and TPA',
}
_SIZES = {'bank_mb': 'Bank, MB', 'cache_mb_per_image': 'Cache, MB per image'}
# Of these the paper gives only an upper bound.
_BOUNDS = ('bank_update', 'feature_transfer')


def cost_table(subject: Subject, name: str) -> Table:
    """Hosts down, steps across: median milliseconds, the quartiles, and the paper's times."""
    rows = []
    for view in subject.views:
        labels = word(subject.host(view.run)), word(subject.backbone(view.run))
        paper = cost_reference(view.run)
        if view.result is None or view.result.cost is None:
            cells = [unmeasured(pending(view), paper.get(column)) for column in (*_STEPS, *_SIZES)]
        else:
            cells = _measured(view.result.cost, paper)
        rows.append((*labels, *cells))
    columns = 'Host', 'Backbone', *_STEPS.values(), *_SIZES.values()
    caption = 'Milliseconds per image (median; below it the quartiles), and what is kept (median; below it the range)'
    return Table(name, caption, columns, plain_rows(rows), labels=2, latex=True)


def _measured(cost: Cost, paper: dict[str, float]) -> list[Cell]:
    cells = []
    for column in (*_STEPS, *_SIZES):
        printed = f'{"≤ " if column in _BOUNDS else ""}{paper[column]:g}' if column in paper else ''
        value = cost.columns.get(column) if column in _STEPS else getattr(cost, column)
        if isinstance(value, Timing):
            spread = f'{_short(value.low)}–{_short(value.high)}'
            cells.append(Cell(_short(value.median), value.median, printed, spread=spread))
        else:
            ends = [_short(end) for end in cost.cache_mb_range] if column == 'cache_mb_per_image' else []
            spread = '–'.join(ends) if len(set(ends)) > 1 else ''
            cells.append(number(value) if value is None else Cell(_short(value), value, printed, spread=spread))
    return cells


def _short(value: float) -> str:
    """Three digits are more than a time is good for."""
    return f'{value:.0f}' if value >= 100 else f'{value:.3g}'


def timing_table(subject: Subject, name: str) -> Table:
    """Every step of every host in a row of its own."""
    rows = []
    for view in subject.done:
        labels = word(subject.host(view.run)), word(subject.backbone(view.run))
        for column, timing in view.result.cost.columns.items():
            values = timing.median, timing.low, timing.high
            times = (number(value, digits=3) for value in values)
            rows.append((*labels, word(_STEPS.get(column, column)), *times, number(timing.repeats, digits=0)))
    columns = 'Host', 'Backbone', 'Step', 'Median, ms', 'Lower quartile', 'Upper quartile', 'Images'
    return Table(name, 'All times', columns, plain_rows(rows), labels=3, csv=True, folded=True)


def machines(subject: Subject) -> list[str]:
    """What was measured where, a sentence for each setting."""
    costs = [(view.run, view.result.cost) for view in subject.done if view.result.cost is not None]
    settings = grouped(costs, lambda pair: (pair[1].device, _sizes(pair[1]), pair[1].num_classes))
    return [
        f'{", ".join(f"{subject.host(run)} {subject.backbone(run)}" for run, _ in found)}: measured on {device}, with '
        f'images of {sizes} and {classes} classes.'
        for (device, sizes, classes), found in settings.items()
    ]


def _sizes(cost: Cost) -> str:
    """Height and width of the images: the medians, and the smallest and largest where they differ."""
    middle, *others = (f'{height} × {width}' for height, width in (cost.image_size, *cost.image_sizes))
    return f'{middle} (median; {others[0]} to {others[1]})' if len(set(others)) > 1 else middle
