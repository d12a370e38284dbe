"""The content of a report: which tables and figures show an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import yaml

from ...catalog import Row, paper
from .. import frames
from ..claims import Claim, claims, measured
from ..experiments import CONSISTENCY, EXPERIMENTS
from ..folders import RunView, State
from ..suite import SUITES, Suite
from .albums import albums
from .figures import slug
from .findings import Runs, class_gains, follows, gains, growth, overlaps, repetitions, times
from .section import Section
from .tables import Cell, wide

# How many runs a note names.
_NAMED = 5
# Experiments that score TPA as the config has it, so that any of them can tell about classes; the best source first.
_CLASS_SOURCES = ('main', 'components', 'bank-size')
# Columns at the left of tables of hosts.
_HOSTS = {'host': 'Host', 'backbone': 'Backbone'}
#: What the report calls things.
WORDS = yaml.safe_load((Path(__file__).parent / 'words.yaml').read_text(encoding='utf-8'))


def build_sections(suite: Suite, views: list[RunView], cells: pd.DataFrame) -> list[Section]:
    """The claims of the text, a section for each experiment, and one about classes after the main table.

    Args:
        suite: The suite.
        views: All its runs.
        cells: From :func:`~tpa_mmseg.reproduce.frames.cells`.
    """
    runs = {name: [view for view in views if view.run.experiment == name] for name in EXPERIMENTS}
    sections = [_claims(suite, runs)]
    for name, experiment in EXPERIMENTS.items():
        if not runs[name]:
            continue
        section = _start(name, experiment.title, experiment.about, runs[name])
        for fill in _FILL.get(name, [_variants]):
            fill(section, runs, cells[cells.experiment == name])
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
    if name in EXPERIMENTS:
        section.failures = [(view.run.name, view.error or '') for view in views if view.state is State.FAILED]
    found = [f'{view.run.name} ({frames.partial(view)})' for view in views if frames.partial(view)]
    if found:
        more = f' and {len(found) - _NAMED} more' if len(found) > _NAMED else ''
        section.notes.append(f'Not made with the number of images that is planned: {", ".join(found[:_NAMED])}{more}.')
    return section


def _claims(suite: Suite, runs: Runs) -> Section:
    """The claims of the paper's text, from our numbers, from the paper's cells, and as it prints them."""
    views = [*runs['main'], *runs['vfm'], *runs['composition']]
    section = _start('claims', 'Claims of the text', "what the paper's text says about its tables", views)
    section.notes = WORDS['notes']['claims']
    ours = {claim.title: claim for claim in claims(measured(views))}
    theirs = {claim.title: claim for claim in claims(paper.scores())} if suite.name == 'paper' else {}
    rows, none = [], Claim('', None, 0)
    for title in dict.fromkeys((*theirs, *ours)):
        mine, printed = ours.get(title, none), theirs.get(title, none)
        values = pd.Series([mine.value, printed.value], dtype=float)
        digits = 0 if title == 'negative cells' else 2
        cell = Cell(*values, digits=digits)
        text = Cell() if printed.printed is None else Cell(printed.printed, digits=digits // 2)
        for key, name in suite.backbones.items():
            title = title.replace(f', {key}', f', {name}')
        rows.append((title[0].upper() + title[1:], cell, mine.cells, text))
    ours_and = "Ours, and from the paper's cells" if theirs else 'Ours'
    frame = pd.DataFrame(rows, columns=['Claim', ours_and, 'Cells of ours', "In the paper's text"])
    section.tabulate('claims', 'Claims of the text, in points of mIoU', frame if theirs else frame.iloc[:, :3])
    return section


def _hosts(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    """Rows for each host: alone, with other methods, with TPA, gain."""
    others = cells.run.isin([view.run.name for view in runs[section.name] if not view.run.settings])
    methods = set(cells.row[others])
    if methods and cells[others].ours.isna().all():
        section.notes.append(WORDS['comparisons'])
        # Without numbers of ours or of the paper there is nothing to compare.
        cells = cells[~others | cells[others].paper.notna().any()]
    frame = wide(cells, {'row': 'Row', **_HOSTS, 'quantity': 'Number'}, digits=1)
    section.tabulate(section.name, f'mIoU: {section.about}', _in_blocks(frame, methods), grouped=True)
    _resclip(section, cells)
    _numbers(section, cells)
    if cells.paper.notna().any():
        section.notes.append(paper.about_base_rows())


def _in_blocks(frame: pd.DataFrame, others: set[str]) -> pd.DataFrame:
    """The table of hosts as the paper has it. Args: frame: with Row, Host, Number; others: rows of other methods."""
    method = frame.Row.isin(others)
    host = frame.Row.where(~method, frame.Row.map(_without_method)).map(list(dict.fromkeys(frame.Row)).index)
    place = frame.Number.map({'base': 0, 'tpa': 2, 'gain': 3}).where(~method, 1)
    names = frame.Number.map(WORDS['rows']).where(~method, '+' + frame.Host.str.rpartition('+')[2])
    frame = frame.assign(Host=frame.Host.where(place == 0, names), Backbone=frame.Backbone.where(place == 0, ''))
    return frame.iloc[(10 * host + place).argsort(kind='stable')].drop(columns=['Row', 'Number'])


def _without_method(row: str) -> str:
    """``proxyclip-sam-fsa_vit-b16`` -> ``proxyclip-sam_vit-b16``."""
    parts = Row.of(row)
    return str(parts._replace(variant=parts.variant.rpartition('-')[0]))


def _resclip(section: Section, cells: pd.DataFrame) -> None:
    """ResCLIP on the host of the ablations beside TPA."""
    row = SUITES[cells.suite.iloc[0]].ablation
    resclip = str(row._replace(variant='resclip'))
    if section.name == 'main' and cells.row.eq(resclip).any():
        found = cells[cells.row.isin([str(row), resclip]) & (cells.quantity != 'gain')]
        found = found.assign(host=found.host + found.quantity.map({'base': '', 'tpa': ' + TPA'}))
        section.tabulate('main-resclip', 'ResCLIP and TPA on the same host (mIoU)', wide(found, _HOSTS, digits=1))


def _variants(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    """The host alone, then the gain of each setting of TPA."""
    shown = cells[cells.quantity != 'tpa']
    alone = f'{cells.host.iloc[0]} {cells.backbone.iloc[0]} alone (mIoU)'
    shown = shown.assign(title=shown.title.where(shown.quantity == 'gain', alone))
    section.tabulate(section.name, f'Gain in mIoU: {section.about}', wide(shown, {'title': 'Setting'}, digits=2))
    _numbers(section, cells)
    gains(section, cells)


def _numbers(section: Section, cells: pd.DataFrame) -> None:
    """All numbers, and a note on averages that the paper prints and that are not the mean of their row, as ours is."""
    printed, titles = cells.paper.notna().any(), WORDS['numbers']
    columns = [name for name in titles if printed or name not in ('paper', 'difference')]
    frame = cells[columns].rename(columns=titles)
    section.tabulate(f'{section.name}-numbers', 'All numbers (mIoU)', frame, numbers=True)
    rows = zip(cells.row, cells.host + ' ' + cells.backbone, strict=True)
    names = dict(rows) | dict(zip(cells.setting, cells.title, strict=True))
    found = [
        f'{names[entry["key"]]}: {entry["printed"]} instead of {entry["mean"]}'
        for entry in paper.tables()['averages_that_differ_from_the_mean']
        if printed and entry['table'] == section.name and entry['key'] in names
    ]
    if found:
        others = '; '.join(found)
        section.notes.append(f"The paper's averages are the means of its cells. It prints others for {others}.")


def _consistency(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    """A row for each host: the gain of every setting over the paper's TPA, and what the pool said."""
    frame = frames.consistency(runs['consistency'])
    if len(frame):
        added = [setting.title for setting in CONSISTENCY[1:]]
        signed = frame[added].map(lambda gain: Cell(gain, digits=2, signed=True))
        section.tabulate('consistency', 'mIoU of host and TPA, and gains over TPA', frame.assign(**signed))
        follows(section, frame)
    _numbers(section, cells)


def _cost(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    frame, titles = frames.cost(runs['cost']), WORDS['steps'] | WORDS['sizes']
    rows = []
    for view in runs['cost']:
        names, note = frames.labels(view.run), '' if view.result is not None else 'not run'
        name = [names[part] for part in ('host', 'backbone', 'benchmark')]
        found = frame[frame.run == view.run.name]
        steps = {row.step: Cell(row.median, row.paper, note=note, digits=2) for row in found.itertuples()}
        cost = view.result and view.result.cost
        about = (cost.num_classes, ' × '.join(map(str, cost.image_size))) if cost else (None, '–')
        rows.append([*name, *about, *(steps.get(step, Cell(note=note)) for step in titles)])
    devices = sorted({view.result.cost.device for view in runs['cost'] if view.result and view.result.cost})
    if devices:
        section.notes.append(f'Measured on {", ".join(devices)}, one image at a time.')
    table = pd.DataFrame(rows, columns=['Host', 'Backbone', 'Benchmark', 'Classes', 'Image', *titles.values()])
    section.tabulate('cost', 'Median milliseconds per image (of the median size), and what is kept', table)
    frame['step'] = frame.step.map(titles)
    long = frame.drop(columns='run').rename(columns=str.capitalize)
    section.tabulate('cost-numbers', 'All times with their quartiles', long, numbers=True)
    times(section, frame[frame.benchmark.eq(frame.benchmark.iat[0])] if len(frame) else frame, WORDS['steps'].values())


def _pictures(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    section.albums = albums(runs[section.name])


def _classes(suite: Suite, views: list[RunView]) -> Section:
    """Gain of each class, from the first experiment that has the benchmark."""
    found: dict[str, RunView] = {}
    for view in sorted(
        (view for view in views if view.run.row == suite.ablation and view.run.experiment in _CLASS_SOURCES),
        key=lambda view: (view.state is not State.DONE, _CLASS_SOURCES.index(view.run.experiment)),
    ):
        found.setdefault(view.run.benchmark, view)
    chosen = [found[name] for name in suite.benchmarks if name in found]
    section = _start('classes', 'Gain of each class', WORDS['about classes'], chosen)
    class_gains(section, suite, views)
    titles = WORDS['classes']
    for benchmark, rows in frames.classes(chosen).groupby('benchmark', sort=False):
        table = rows[list(titles)].rename(columns=titles)
        title = f'{rows.host.iloc[0]} {rows.backbone.iloc[0]}, {benchmark}: every class'
        section.tabulate(f'classes-{slug(benchmark)}', title, table, numbers=True)
    return section


# What shows an experiment; by default a table of variants.
_FILL: dict[str, list[Callable[[Section, Runs, pd.DataFrame], None]]] = {
    **dict.fromkeys(('main', 'vfm', 'composition'), [_hosts]),
    'bank-size': [_variants, growth],
    'repetition': [repetitions],
    'overlap': [_variants, overlaps],
    'consistency': [_consistency],
    'cost': [_cost],
    **dict.fromkeys(('pictures', 'anchors'), [_pictures]),
}
