"""The content of a report: which tables and figures show an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import yaml

from ...catalog import paper
from .. import frames
from ..experiments import EXPERIMENTS, suite_of
from ..folders import RunView, State
from ..suite import Suite
from .albums import Album, albums
from .figures import Figure, consistency_figures, cost_figures, gain_figures, slug
from .findings import Findings, claim_table, class_gains, comparison_tables, growth, overlaps, repetitions
from .tables import Cell, Table, wide

# How many runs a note names.
_NAMED = 5
# Experiments that score TPA as the config has it, so that any of them can tell about classes; the best source first.
_CLASS_SOURCES = ('main', 'components', 'bank-size')
#: What the report calls things.
WORDS = yaml.safe_load((Path(__file__).parent / 'words.yaml').read_text(encoding='utf-8'))
_STEPS, _NUMBERS, _ROWS = WORDS['steps'], WORDS['numbers'], WORDS['rows']


@dataclass
class Section:
    """One experiment, or another view of its results.

    Args:
        name: Its name on the command line.
        title: Its name for people.
        about: What it shows.
        progress: How far it is.
        started: Whether there is anything to see.
        notes: What a reader has to know, a paragraph each.
        failures: Name of a failed run and why.
        tables, figures, albums: What came out.
    """

    name: str
    title: str
    about: str
    progress: str
    started: bool
    notes: list[str] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    albums: list[Album] = field(default_factory=list)


def build_sections(suite: Suite, views: list[RunView], cells: pd.DataFrame) -> list[Section]:
    """The claims of the text, a section for each experiment, and one about classes after the main table.

    Args:
        suite: The suite.
        views: All its runs.
        cells: From :func:`~tpa_mmseg.reproduce.frames.cells`.
    """
    sections = [_claims(suite, views)]
    for name, experiment in EXPERIMENTS.items():
        mine = [view for view in views if view.run.experiment == name]
        if not mine:
            continue
        section = _start(name, experiment.title, experiment.about, mine)
        _FILL.get(name, _variants)(section, mine, cells[cells.experiment == name])
        _add(section, _FINDINGS[name](mine, views) if name in _FINDINGS else Findings())
        section.notes += WORDS['notes'].get(name, [])
        section.notes += WORDS['notes beside the paper'].get(name, []) if suite.name == 'paper' else []
        sections.append(section)
        if name == 'main':
            sections.append(_classes(suite, views))
    return sections


def _start(name: str, title: str, about: str, views: list[RunView]) -> Section:
    states = Counter(view.state for view in views)
    done = f'{states[State.DONE]} of {len(views)} runs done'
    others = (State.RUNNING, State.INTERRUPTED, State.FAILED)
    progress = ', '.join([done, *(f'{states[state]} {state.value}' for state in others if states[state])])
    section = Section(name, title, about, progress, states[State.WAITING] < len(views))
    section.failures = [(view.run.name, view.error or '') for view in views if view.state is State.FAILED]
    found = [f'{view.run.name} ({frames.partial(view)})' for view in views if frames.partial(view)]
    if found:
        more = f' and {len(found) - _NAMED} more' if len(found) > _NAMED else ''
        section.notes.append(f'Not made with the number of images that is planned: {", ".join(found[:_NAMED])}{more}.')
    return section


def _add(section: Section, found: Findings) -> None:
    section.tables += found.tables
    section.figures += found.figures
    section.notes += found.notes


def _claims(suite: Suite, views: list[RunView]) -> Section:
    tables = [view for view in views if view.run.experiment in ('main', 'vfm', 'composition')]
    section = _start('claims', 'Claims of the text', "what the paper's text says about its tables", tables)
    section.failures, section.tables = [], [claim_table(suite, tables)]
    section.notes = WORDS['notes']['claims']
    return section


def _hosts(section: Section, views: list[RunView], cells: pd.DataFrame) -> None:
    """Three rows for each host: alone, with TPA, gain."""
    suite, others = suite_of(views[0].run.suite), {view.run.name for view in views if not view.run.settings}
    frame = wide(cells[~cells.run.isin(others)], ['host', 'backbone', 'quantity'], digits=1)
    frame['host'] = [
        host if row == 'base' else _ROWS[row] for host, row in zip(frame.host, frame.quantity, strict=True)
    ]
    frame.loc[frame.quantity != 'base', 'backbone'] = ''
    frame = frame.drop(columns='quantity').rename(columns={'host': 'Host', 'backbone': 'Backbone'})
    section.tables = [Table(section.name, f'mIoU: {section.about}', frame, group=3)]
    section.tables += [*comparison_tables(suite, views, cells), _numbers(section, cells)]
    _note_averages(section, cells)
    if cells.paper.notna().any():
        section.notes.append(paper.about_base_rows())


def _variants(section: Section, views: list[RunView], cells: pd.DataFrame) -> None:
    """The host alone, then the gain of each setting of TPA."""
    shown = cells[cells.quantity != 'tpa']
    alone = f'{cells.host.iloc[0]} {cells.backbone.iloc[0]} alone (mIoU)'
    frame = wide(
        shown.assign(title=shown.title.where(shown.quantity == 'gain', alone)), ['title', 'quantity'], digits=2
    )
    frame = frame.drop(columns='quantity').rename(columns={'title': 'Setting'})
    section.tables = [Table(section.name, f'Gain in mIoU: {section.about}', frame), _numbers(section, cells)]
    section.figures = list(gain_figures(cells))
    _note_averages(section, cells)


def _numbers(section: Section, cells: pd.DataFrame) -> Table:
    columns = [name for name in _NUMBERS if cells.paper.notna().any() or name not in ('paper', 'difference')]
    frame = cells[columns].rename(columns=_NUMBERS)
    return Table(f'{section.name}-numbers', 'All numbers (mIoU)', frame, numbers=True)


def _overlap(section: Section, views: list[RunView], cells: pd.DataFrame) -> None:
    _variants(section, views, cells)
    frame = frames.overlap(views)
    names = ['Benchmark', 'Pool', 'Overlap, %', 'Classes shared, %', 'Pool images']
    section.tables.append(Table('overlap-pools', 'The pools', frame.set_axis(names, axis=1), numbers=True))


def _consistency(section: Section, views: list[RunView], cells: pd.DataFrame) -> None:
    """A row for each host: the gain of every setting over the paper's TPA, and what the pool said."""
    frame = frames.consistency(views)
    if len(frame):
        caption = f'mIoU of host and TPA, gain of other settings over TPA: {section.about}'
        section.tables.append(Table('consistency', caption, frame))
    section.tables.append(_numbers(section, cells))
    section.figures = list(consistency_figures(frame))


def _repetition(section: Section, views: list[RunView], cells: pd.DataFrame) -> None:
    frame = frames.repetition(views)
    names = ['Benchmark', 'Seen by', 'Images', 'At least', 'Classes, %']
    section.tables = [Table('repetition', 'All numbers', frame.set_axis(names, axis=1), numbers=True)]


def _cost(section: Section, views: list[RunView], cells: pd.DataFrame) -> None:
    frame, titles = frames.cost(views), _STEPS | WORDS['sizes']
    rows = []
    for view in views:
        names, note = frames.labels(view.run), '' if view.result is not None else 'not run'
        name = [names[part] for part in ('host', 'backbone', 'benchmark')]
        found = frame[frame.run == view.run.name]
        steps = {row.step: Cell(row.median, row.paper, note=note, digits=2) for row in found.itertuples()}
        rows.append([*name, *(steps.get(step, Cell(note=note)) for step in titles)])
        if view.result is not None and (cost := view.result.cost) is not None:
            about = f'images of {" × ".join(map(str, cost.image_size))} (median), {cost.num_classes} classes'
            section.notes.append(f'{" ".join(name)}: {cost.device}, {about}.')
    table = pd.DataFrame(rows, columns=['Host', 'Backbone', 'Benchmark', *titles.values()])
    long = frame.assign(step=frame.step.map(titles)).drop(columns='run').rename(columns=str.capitalize)
    section.tables = [
        Table('cost', 'Median milliseconds per image, and what is kept', table),
        Table('cost-numbers', 'All times with their quartiles', long, numbers=True),
    ]
    first = frame[frame.benchmark == frame.benchmark.iloc[0]] if len(frame) else frame
    section.figures = list(cost_figures(first.assign(step=first.step.map(titles)), list(_STEPS.values())))


def _pictures(section: Section, views: list[RunView], cells: pd.DataFrame) -> None:
    section.albums = albums(views)


def _classes(suite: Suite, views: list[RunView]) -> Section:
    """Gain of each class, from the first experiment that has the benchmark."""
    found: dict[str, RunView] = {}
    for view in sorted(
        (view for view in views if view.run.row == suite.ablation and view.run.experiment in _CLASS_SOURCES),
        key=lambda view: (view.state is not State.DONE, _CLASS_SOURCES.index(view.run.experiment)),
    ):
        found.setdefault(view.run.benchmark, view)
    chosen = [found[name] for name in suite.benchmarks if name in found]
    name = f'{suite.hosts[suite.ablation.host]} {suite.backbones[suite.ablation.backbone]}'
    section = _start('classes', 'Gain of each class', f'which classes {name} gains with TPA', chosen)
    section.failures = []
    frame = frames.classes(chosen)
    _add(section, class_gains(suite, views))
    names = ['Class', 'Base IoU', 'TPA IoU', 'Gain', 'Pixels', 'Test images', 'Anchors']
    for benchmark, rows in frame.groupby('benchmark', sort=False):
        table = rows[['class', 'host_iou', 'tpa_iou', 'gain', 'support', 'images', 'anchors']].set_axis(names, axis=1)
        section.tables.append(Table(f'classes-{slug(benchmark)}', f'{benchmark}: every class', table, numbers=True))
    return section


def _note_averages(section: Section, cells: pd.DataFrame) -> None:
    """Says which of the paper's printed averages are not the mean of their row, which is what ours stands beside."""
    keys = {*cells.setting, *cells.run.str.rpartition('_')[0]} if cells.paper.notna().any() else set()
    found = [
        f'{entry["key"]}: {entry["printed"]} instead of {entry["mean"]}'
        for entry in paper.tables()['averages_that_differ_from_the_mean']
        if entry['table'] == section.name and entry['key'] in keys
    ]
    if found:
        section.notes.append(
            f"The paper's averages are the means of its cells. It prints others for {'; '.join(found)}."
        )


_FILL: dict[str, Callable[[Section, list[RunView], pd.DataFrame], None]] = {
    'main': _hosts,
    'vfm': _hosts,
    'composition': _hosts,
    'overlap': _overlap,
    'consistency': _consistency,
    'repetition': _repetition,
    'cost': _cost,
    'pictures': _pictures,
    'anchors': _pictures,
}
# What the paper shows beside the table of an experiment, from its runs and from all.
_FINDINGS: dict[str, Callable[[list[RunView], list[RunView]], Findings]] = {
    'bank-size': lambda mine, views: growth(mine),
    'repetition': lambda mine, views: repetitions(mine, [one for one in views if one.run.experiment == 'bank-size']),
    'overlap': lambda mine, views: overlaps(mine),
}
