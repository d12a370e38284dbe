"""The content of a report: which tables and figures show an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd

from ...catalog import paper
from .. import frames
from ..experiments import EXPERIMENTS, suite_of
from ..folders import RunView, State
from ..suite import Suite
from .albums import Album, albums
from .figures import Figure, cost_figures, gain_figures, slug
from .findings import Findings, claim_table, class_gains, comparison_tables, growth, overlaps, repetitions
from .tables import Cell, Table, wide

# How many runs a note names.
_NAMED = 5
# Experiments that score TPA as the config has it, so that any of them can tell about classes; the best source first.
_CLASS_SOURCES = ('main', 'components', 'bank-size')
_STEPS = {
    'clip': 'CLIP',
    'host': 'Whole host',
    'encoder': 'Encoder',
    'total': 'Host + encoder',
    'bank_encoder_pass': 'Encoder for the bank',
    'bank_update': 'Bank update',
    'feature_transfer': 'Transfer of features',
    'lookup': 'Lookup',
}
_SIZES = {
    'prototypes_kb': 'Prototypes in half precision, KB',
    'bank_mb': 'File of the bank, MB',
    'cache_mb_per_image': 'Cache, MB per image',
}
_ROWS = {'base': '', 'tpa': '+ TPA', 'gain': 'gain'}
_NUMBERS = {
    **{name: name.capitalize() for name in ('host', 'backbone', 'benchmark', 'state')},
    **{'title': 'Setting', 'quantity': 'Number', 'ours': 'Ours', 'paper': 'Paper', 'difference': 'Difference'},
}


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
        _add(section, _found(suite, section, mine, views))
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


def _found(suite: Suite, section: Section, mine: list[RunView], views: list[RunView]) -> Findings:
    """What the paper shows beside the table of an experiment."""
    if section.name == 'bank-size':
        return growth(mine)
    if section.name == 'repetition':
        return repetitions(mine, [view for view in views if view.run.experiment == 'bank-size'])
    if section.name == 'overlap':
        return overlaps(mine)
    return Findings()


def _claims(suite: Suite, views: list[RunView]) -> Section:
    tables = [view for view in views if view.run.experiment in ('main', 'vfm', 'composition')]
    section = _start('claims', 'Claims of the text', "what the paper's text says about its tables", tables)
    section.failures, section.tables = [], [claim_table(suite, tables)]
    section.notes = [
        'Means are means of rows, and a row is the mean of the benchmarks that both numbers have. A row of another '
        'method counts where it, its host and TPA have run. Attention hosts are SCLIP, ClearCLIP and NACLIP, VFM hosts '
        'ProxyCLIP and Trident.'
    ]
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
        if section.name == 'main':
            section.notes.append(
                "The paper's row of NACLIP + MLMP is no measurement of this protocol: it is its base row plus the "
                "differences of MLMP's own protocol at 224 pixels, to 0.1. Ours is measured."
            )


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
    section.notes.append(
        'Labels were used only to make these splits: to choose which images are in a pool. The banks are made from the '
        'images alone, and no image of a pool is evaluated. The evaluation images are the same for all pools, but only '
        'a part of the test set, so that their mIoU differs from that of the main table.'
    )


def _repetition(section: Section, views: list[RunView], cells: pd.DataFrame) -> None:
    frame = frames.repetition(views)
    names = ['Benchmark', 'Seen by', 'Images', 'At least', 'Classes, %']
    section.tables = [Table('repetition', 'All numbers', frame.set_axis(names, axis=1), numbers=True)]


def _cost(section: Section, views: list[RunView], cells: pd.DataFrame) -> None:
    frame, titles = frames.cost(views), _STEPS | _SIZES
    rows = []
    for names, found in frame.groupby(['host', 'backbone', 'benchmark'], sort=False):
        steps = {row.step: Cell(row.median, row.paper, digits=2) for row in found.itertuples()}
        rows.append([*names, *(steps.get(step, Cell()) for step in titles)])
    table = pd.DataFrame(rows, columns=['Host', 'Backbone', 'Benchmark', *titles.values()])
    long = frame.assign(step=frame.step.map(titles)).drop(columns='run').rename(columns=str.capitalize)
    section.tables = [
        Table('cost', 'Median milliseconds per image, and what is kept', table),
        Table('cost-numbers', 'All times with their quartiles', long, numbers=True),
    ]
    first = frame[frame.benchmark == frame.benchmark.iloc[0]] if len(frame) else frame
    section.figures = list(cost_figures(first.assign(step=first.step.map(titles)), list(_STEPS.values())))
    for view in views:
        if view.result is not None and (cost := view.result.cost) is not None:
            size = ' × '.join(map(str, cost.image_size))
            name = ' '.join(frames.labels(view.run)[part] for part in ('host', 'backbone', 'benchmark'))
            section.notes.append(f'{name}: {cost.device}, images of {size} (median), {cost.num_classes} classes.')
    if frame.paper.notna().any():
        section.notes.append(
            "The paper's times are of an A100: beside those of another device they say little. Its total is that of "
            'one pass of CLIP and one of the encoder, ours that of the whole host and the encoder. Its bank update '
            'and transfer are upper bounds; transfer is that of cached half-precision features from the CPU to the '
            'GPU, which a CPU does not have. Its bank is C x D prototypes in half precision, 32 KB for VOC to 225 KB '
            'for ADE20K (COCO-Stuff, with more classes, has 256.5 KB); our file has sums in double precision, and '
            'counts.'
        )


def _pictures(section: Section, views: list[RunView], cells: pd.DataFrame) -> None:
    section.albums = albums(views)
    section.notes.append(
        'Green: corrected by TPA. Red: broken by it. Light gray: right with and without it. Dark gray: wrong in both.'
    )


def _anchors(section: Section, views: list[RunView], cells: pd.DataFrame) -> None:
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
    'repetition': _repetition,
    'cost': _cost,
    'pictures': _pictures,
    'anchors': _anchors,
}
