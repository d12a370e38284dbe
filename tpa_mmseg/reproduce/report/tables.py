"""Tables of scores: as the paper lays them out, and with every number in a column of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..folders import State
from .document import Cell, Group, Table, absent, number, pending, plain_rows, unmeasured, word
from .subject import Entry, Subject, entries, grouped

_QUANTITIES = ('base', 'tpa', 'gain')
_EMPTY = Cell('')


def host_table(subject: Subject, name: str, caption: str) -> Table:
    """Hosts down, benchmarks across: base, TPA and gain of each, and their averages."""
    columns = subject.benchmarks()
    runs = grouped(subject.views, lambda view: (subject.host(view.run), subject.backbone(view.run)))
    groups = []
    for (host, backbone), views in runs.items():
        found = {entry.view.run.benchmark: entry for entry in entries(views)}
        rows = []
        for quantity, labels in zip(_QUANTITIES, ((host, backbone), ('+ TPA', ''), ('gain', '')), strict=True):
            cells = _across(subject, [found.get(column) for column in columns], quantity, digits=1)
            rows.append((*(word(label) for label in labels), *cells))
        groups.append(Group(tuple(rows), key=1))
    titles = _titles(subject, columns)
    return Table(name, caption, ('Host', 'Backbone', *titles), tuple(groups), labels=2, latex=True)


def variant_table(subject: Subject, name: str, caption: str) -> Table:
    """Variants down, benchmarks across: the mIoU of the host alone, then the gain of each variant."""
    columns = subject.benchmarks()
    found = grouped(entries(subject.views), lambda entry: entry.title)
    run = subject.views[0].run
    rows = []
    for title, variants in found.items():
        places = {entry.view.run.benchmark: entry for entry in variants}
        line = [places.get(column) for column in columns]
        if not rows:
            host = word(f'{subject.host(run)} {subject.backbone(run)} alone (mIoU)')
            rows.append((host, *_across(subject, line, 'base', digits=2)))
        rows.append((word(title), *_across(subject, line, 'gain', digits=2)))
    return Table(name, caption, ('Variant', *_titles(subject, columns)), plain_rows(rows), latex=True)


def _titles(subject: Subject, columns: Sequence[str]) -> list[str]:
    titles = [subject.suite.benchmarks[column] for column in columns]
    return [*titles, 'Average'] if len(columns) > 1 else titles


def _across(subject: Subject, line: Sequence[Entry | None], quantity: str, digits: int) -> list[Cell]:
    """Cells of a row, and the average where there is more than one benchmark. None is a run that is not planned."""
    options = {'digits': digits, 'signed': quantity == 'gain'}
    cells = [
        absent('–', 'not part of the experiment') if entry is None else _cell(subject, entry, quantity, **options)
        for entry in line
    ]
    planned = [entry for entry in line if entry is not None]
    if len(line) > 1 and len(planned) == 1:
        cells.append(absent('–', 'only one benchmark'))
    elif len(line) > 1:
        average = _average(subject, planned, quantity, **options)
        # Rows of other lengths stand above and below it.
        over = f'over {len(planned)} of {len(line)}' if len(planned) < len(line) else ''
        partial = 'not all images' if any(subject.partial(entry.view) for entry in planned) else ''
        cells.append(replace(average, spread=', '.join(filter(None, (over, partial)))))
    return cells


def _cell(subject: Subject, entry: Entry, quantity: str, digits: int, signed: bool) -> Cell:
    ours, paper = getattr(entry, quantity), getattr(entry.paper, quantity)
    if entry.view.state is not State.DONE:
        return unmeasured(pending(entry.view), paper, signed)
    return replace(number(ours, digits, signed, paper, subject.tolerance), spread=subject.partial(entry.view))


def _average(subject: Subject, line: Sequence[Entry], quantity: str, digits: int, signed: bool) -> Cell:
    """The mean over benchmarks, only when all of them have run: a mean of some cannot be set beside one of all."""
    ours = [getattr(entry, quantity) for entry in line]
    paper = [getattr(entry.paper, quantity) for entry in line]
    printed = None if not paper or None in paper else round(sum(paper) / len(paper), digits)
    missing = ours.count(None)
    if missing or not ours:
        reason = absent(f'{len(ours) - missing} of {len(ours)}', 'the average is taken when all have run')
        return unmeasured(reason, printed, signed)
    return number(sum(ours) / len(ours), digits, signed, printed, subject.tolerance)


def number_table(subject: Subject, name: str) -> Table:
    """One row for every variant of every run: base, TPA, gain, the paper's, and the differences."""
    several = any(len(view.run.settings) > 1 for view in subject.views)
    labels: dict[str, Callable[[Entry], Cell]] = {
        'Host': lambda entry: word(subject.host(entry.view.run)),
        'Backbone': lambda entry: word(subject.backbone(entry.view.run)),
        'Benchmark': lambda entry: word(subject.benchmark(entry.view.run)),
        **({'Variant': lambda entry: word(entry.title)} if several else {}),
        'State': lambda entry: word(subject.state(entry.view)),
    }
    values: dict[str, Callable[[Entry], Cell]] = {
        'Base': lambda entry: _plain(entry.base),
        'TPA': lambda entry: _plain(entry.tpa),
        'Gain': lambda entry: _plain(entry.gain, signed=True),
    }
    if subject.comparable:
        values |= {
            "Paper's base": lambda entry: _plain(entry.paper.base),
            "Paper's TPA": lambda entry: _plain(entry.paper.tpa),
            "Paper's gain": lambda entry: _plain(entry.paper.gain, signed=True),
            'Difference, base': lambda entry: _difference(subject, entry, 'base'),
            'Difference, TPA': lambda entry: _difference(subject, entry, 'tpa'),
            'Difference, gain': lambda entry: _difference(subject, entry, 'gain'),
        }
    rows = [[column(entry) for column in (*labels.values(), *values.values())] for entry in entries(subject.views)]
    titles = (*labels, *values)
    return Table(name, 'All numbers (mIoU)', titles, plain_rows(rows), len(labels), csv=True, folded=True)


def _plain(value: float | None, signed: bool = False) -> Cell:
    return _EMPTY if value is None else number(value, signed=signed)


def _difference(subject: Subject, entry: Entry, quantity: str) -> Cell:
    ours, paper = getattr(entry, quantity), getattr(entry.paper, quantity)
    if ours is None or paper is None:
        return _EMPTY
    compared = number(ours, paper=paper, tolerance=subject.tolerance)
    return Cell(compared.difference, round(ours - paper, 2), difference=compared.difference, outside=compared.outside)
