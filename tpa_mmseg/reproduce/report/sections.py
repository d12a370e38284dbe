"""The content of a report: which tables and figures show an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pandas as pd

from ...catalog import Row, paper
from .. import frames
from ..claims import Claim, claims, measured
from ..experiments import EXPERIMENTS
from ..folders import RunView, State
from ..suite import SUITES, Suite
from .albums import albums
from .figures import slug
from .findings import Runs, class_gains, gains, growth, overlaps, repetitions
from .section import Section
from .tables import Cell, wide
from .words import WORDS

# How many runs a note names.
_NAMED = 5
# Columns at the left of tables of hosts.
_HOSTS = {'host': 'Host', 'backbone': 'Backbone'}


def build_sections(suite: Suite, views: list[RunView], cells: pd.DataFrame) -> list[Section]:
    """The claims of the text, a section for each experiment, and one about classes after the main table.

    Args:
        suite: The suite.
        views: All its runs.
        cells: From :func:`~tpa_mmseg.reproduce.frames.cells`.
    """
    runs = {name: [view for view in views if view.run.experiment == name] for name in EXPERIMENTS}
    sections = [_claims(suite, runs, cells)]
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
            sections.append(_classes(suite, runs['main']))
    return sections


def _start(name: str, title: str, about: str, views: list[RunView]) -> Section:
    states = Counter(view.state for view in views)
    others = (f'{states[one]} {one.value}' for one in (State.RUNNING, State.INTERRUPTED, State.FAILED) if states[one])
    progress = ', '.join([f'{states[State.DONE]} of {len(views)} runs done', *others])
    section = Section(name, title, about, progress, states[State.WAITING] < len(views))
    if name in EXPERIMENTS:
        section.failures = [(view.run.name, view.error or '') for view in views if view.state is State.FAILED]
    found = [f'{view.run.name} ({frames.partial(view)})' for view in views if frames.partial(view)]
    if found:
        more = f' and {len(found) - _NAMED} more' if len(found) > _NAMED else ''
        section.notes.append(f'Not made with the number of images that is planned: {", ".join(found[:_NAMED])}{more}.')
    return section


def _claims(suite: Suite, runs: Runs, cells: pd.DataFrame) -> Section:
    """The claims of the paper's text, from our numbers, from the paper's cells, and as it prints them."""
    tables = ['main', 'vfm', 'composition']
    views = [view for name in tables for view in runs[name]]
    section = _start('claims', 'Claims of the text', "what the paper's text says about its tables", views)
    section.notes = WORDS['notes']['claims']
    ours = {claim.title: claim for claim in claims(measured(cells[cells.experiment.isin(tables)]))}
    printed = claims(pd.DataFrame(paper.scores()).T) if suite.name == 'paper' else []
    theirs = {claim.title: claim for claim in printed}
    rows = []
    for title in dict.fromkeys((*theirs, *ours)):
        mine, their = ours.get(title, Claim(title)), theirs.get(title, Claim(title))
        digits = 0 if title == 'negative cells' else 2
        cell = Cell(mine.value, their.value, digits=digits)
        text = Cell() if their.printed is None else Cell(their.printed, digits=digits // 2)
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
    """All numbers."""
    printed, titles = cells.paper.notna().any(), WORDS['numbers']
    columns = [name for name in titles if printed or name not in ('paper', 'difference')]
    frame = cells[columns].rename(columns=titles)
    section.tabulate(f'{section.name}-numbers', 'All numbers (mIoU)', frame, numbers=True)


def _consistency(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    """A row for each host: the gain of every setting over the paper's TPA, and what the pool said."""
    names, done = ['host', 'backbone', 'benchmark'], cells[cells.quantity.ne('gain')].dropna(subset='ours')
    if len(done):
        scores = done.pivot_table('ours', names, 'title', sort=False)
        scores = scores.reindex(pd.MultiIndex.from_frame(done[names].drop_duplicates()))
        others = scores.columns.drop(['', 'TPA'])
        scores[others] = scores[others].sub(scores['TPA'], axis=0).round(2)
        found = [one for one in frames.entries(runs['consistency'], 'variants') if one['key'] == 'consistent']
        told = pd.DataFrame([{**one, **one['bank'].diagnosis} for one in found]).set_index(names)
        told = told.reindex(columns=['kappa_0', 'kappa_inf', 'rho', 'beta2'])
        told['kappa_0 / kappa_inf'] = (told.kappa_0 / told.kappa_inf).where(told.kappa_inf > 0)
        frame = scores.join(told.round(3)).reset_index().rename(columns={name: name.capitalize() for name in names})
        signed = frame[others].map(lambda gain: Cell(gain, digits=2, signed=True))
        table = frame.assign(**signed).rename(columns={'': 'Host alone'})
        section.tabulate('consistency', 'mIoU of host and TPA, and gains over TPA', table)
        points = frame.rename(columns={'Consistent TPA': 'gain', 'kappa_0 / kappa_inf': 'follows'})
        section.draw('consistency', points.rename(columns=str.lower))
    _numbers(section, cells)


def _cost(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    titles, names = WORDS['steps'] | WORDS['sizes'], ['host', 'backbone', 'benchmark', 'classes', 'image']
    frame = frames.cost(runs['cost'], titles)
    cells = [Cell(row.median, row.paper, note=row.note, digits=2) for row in frame.itertuples()]
    frame = frame.drop(columns='note')
    table = frame.assign(cell=cells).pivot(index=names, columns='step', values='cell')
    table = table.reindex(pd.MultiIndex.from_frame(frame[names].drop_duplicates()), columns=list(titles.values()))
    table = table.reset_index().rename(columns={name: name.capitalize() for name in names})
    section.tabulate('cost', 'Median milliseconds per image (of the median size), and what is kept', table)
    known = frame.dropna(subset=['median', 'paper'], how='all').rename(columns=str.capitalize)
    section.tabulate('cost-numbers', 'All times with their quartiles', known, numbers=True)
    first = frame[frame.benchmark.eq(frame.benchmark.iat[0]) & frame.step.isin(WORDS['steps'].values())]
    if first['median'].notna().any():
        section.draw('cost', first.dropna(subset='median'))
    devices = sorted({view.result.cost.device for view in runs['cost'] if view.result is not None})
    if devices:
        section.notes.append(f'Measured on {", ".join(devices)}, one image at a time.')


def _pictures(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    section.albums = albums(runs[section.name])


def _classes(suite: Suite, views: list[RunView]) -> Section:
    """Gain of each class. Args: views: the runs of the main table."""
    chosen = [view for view in views if view.run.row == suite.ablation]
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
