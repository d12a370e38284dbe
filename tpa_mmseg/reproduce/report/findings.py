"""What the paper's figures and its text show, from results: pools and their classes, per-class gains, claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import altair as alt
import pandas as pd

from ...catalog import paper
from ...datasets.pool import DEFAULT_SIZE
from .. import frames
from ..claims import claims, measured
from ..folders import RunView, State
from ..results import RepetitionCurve
from ..suite import Suite
from .figures import Figure, axes, finish, hover, slug
from .tables import Cell, Table, wide

# A class of fewer test images is rare.
_RARE = 50
# Share of the test images at which the paper reads off how much of the gain is reached.
_EARLY = 'share-0.1'
# More names than this do not fit below a figure.
_NAMES = 40
_GAIN, _CHANGE = 'Gain in mIoU', 'Change of IoU'
_COLOR = alt.condition('datum.gain >= 0', alt.value('#2a9d62'), alt.value('#d1495b'))
_PLACES = alt.Scale(domain=['in the pool', 'not in the pool'], range=['#2a9d62', '#d1495b'])


@dataclass
class Findings:
    """A part of a section. Args: tables; figures; notes, a paragraph each."""

    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _variants(views: Iterable[RunView]) -> Iterable[tuple]:
    """Names, result and variant of everything that was scored."""
    for view in views:
        if view.result is not None:
            for variant in view.result.variants:
                yield frames.labels(view.run), view, variant


def _growth(name: str, caption: str, frame: pd.DataFrame, x: tuple[str, str], y: tuple[str, str]) -> Figure:
    """Lines against the size of the pool, one for each benchmark, with a mark where the pool is the usual one.

    Args:
        name, caption: Those of the figure.
        frame: With ``benchmark``, ``setting``, ``images``.
        x, y: Column and title of each axis.
    """
    chart = alt.Chart(frame).encode(
        **axes(*x, *y, log=True),
        color=alt.Color('benchmark:N', title=None, sort=None),
        tooltip=hover('benchmark', 'images', y[0]),
    )
    usual = chart.transform_filter('datum.setting == "full"').mark_point(shape='diamond', size=180, strokeWidth=2)
    return Figure(name, caption, finish(chart.mark_line(point=alt.OverlayMarkDef(size=40)), usual))


def bank_sizes(views: Iterable[RunView]) -> pd.DataFrame:
    """Gain and covered classes of every bank of the experiment ``bank-size``; both shares in percent."""
    rows = [
        (names['benchmark'], one.key, 100 * one.value, one.bank.images, one.gain.mIoU,
         100 * one.bank.classes_covered / max(1, one.bank.num_classes))
        for names, _, one in _variants(views)
        if one.bank is not None and one.value is not None
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=['benchmark', 'setting', 'share', 'images', 'gain', 'covered'])


def growth(views: Sequence[RunView]) -> Findings:
    """Gain against the share of the test images in the bank, and how much of it an early point has."""
    frame = bank_sizes(views)
    if frame.empty:
        return Findings()
    reached = frame.pivot_table(index='benchmark', columns='setting', values='gain', sort=False)
    reached = reached.reindex(columns=[_EARLY, 'full', 'share-1']).reset_index()
    for name in (_EARLY, 'full'):
        reached[f'{name} share'] = (100 * reached[name] / reached['share-1']).where(reached['share-1'] > 0)
    titles = ['10 %', f'{DEFAULT_SIZE} images', 'all images']
    columns = ['Benchmark', *(f'Gain at {title}' for title in titles), *(f'{title}: % of all' for title in titles[:2])]
    share, images, gain = ('share', 'Share of the test images, %'), ('images', 'Images in the bank'), ('gain', _GAIN)
    return Findings(
        [Table('bank-size-reached', 'Share of the final gain that is reached', reached.set_axis(columns, axis=1))],
        [
            _growth('bank-size-share', 'Gain against the share of the test images', frame, share, gain),
            _growth('bank-size-images', 'Gain against the number of images', frame, images, gain),
        ],
    )


def repetitions(views: Sequence[RunView], grown: Sequence[RunView]) -> Findings:
    """Classes that are seen again, by labels, and beside them the classes that banks cover, by anchors.

    Args:
        views: Runs of ``repetition``.
        grown: Runs of ``bank-size``.
    """
    curves = [
        (frames.labels(view.run)['benchmark'], curve)
        for view in views
        if view.result is not None
        for curve in view.result.repetition
    ]
    frame = frames.repetition(views)
    found = Findings()
    if curves:
        twice = frame[frame.at_least == 2].assign(setting='')
        pool, share = ('images', 'Images in the pool'), ('share', 'Classes, %')
        found.figures.append(_growth('repetition', 'Classes that appear at least twice', twice, pool, share))
        expected = pd.DataFrame(
            [
                (name, f'≥ {times}', curve.expected(int(times), _usual(curve)), curve.num_classes)
                for name, curve in curves
                for times in curve.at_least
            ],
            columns=['benchmark', 'seen', 'expected', 'classes'],
        )
        found.figures.append(_bars(expected))
        table = expected.pivot_table('expected', ['benchmark', 'classes'], 'seen', 'first', sort=False)
        table = table.reset_index().rename(columns={'benchmark': 'Benchmark', 'classes': 'Classes'})
        found.tables.append(Table('repetition-expected', f'Expected classes in {DEFAULT_SIZE} images', table))
    banks = bank_sizes(grown)
    if not banks.empty:
        bank, covered = ('images', 'Images in the bank'), ('covered', 'Classes with a prototype, %')
        found.figures.append(_growth('coverage', 'Coverage of banks, from anchors', banks, bank, covered))
    return found


def _usual(curve: RepetitionCurve) -> int:
    """Images of the usual pool."""
    return min(DEFAULT_SIZE, max(curve.sizes, default=0))


def _bars(expected: pd.DataFrame) -> Figure:
    order = list(dict.fromkeys(expected.seen))
    chart = (
        alt.Chart(expected)
        .mark_bar()
        .encode(
            x=alt.X('benchmark:N', title=None, sort=None),
            xOffset=alt.XOffset('seen:N', sort=order),
            y=alt.Y('expected:Q', title='Expected classes'),
            color=alt.Color('seen:N', title='Images', sort=order),
            tooltip=hover('benchmark', 'seen', 'expected', 'classes'),
        )
    )
    caption = f'Classes expected in a bank of {DEFAULT_SIZE} images'
    return Figure('repetition-expected', caption, finish(chart))


def overlaps(views: Sequence[RunView]) -> Findings:
    """Change of every class under each pool, inside the pool and outside it."""
    rows = []
    for names, view, one in _variants(views):
        shared = next((split.shared for split in view.result.overlap if split.key == one.key), ())
        for entry in one.per_class:
            if entry.support and entry.gain is not None:
                place = _PLACES.domain[entry.name not in shared]
                rows.append((names['benchmark'], one.key, entry.name, place, entry.host_iou, entry.gain))
    frame = pd.DataFrame(rows, columns=['benchmark', 'pool', 'class', 'place', 'host_iou', 'gain'])
    if frame.empty:
        return Findings()
    means = frame.groupby(['benchmark', 'pool', 'place'], sort=False).gain.agg(['size', 'mean']).unstack('place')
    means = means.swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False).round(2)
    means.columns = [f'{"Classes" if kind == "size" else "Mean gain"} {place}' for place, kind in means.columns]
    table = means.reset_index().rename(columns={'benchmark': 'Benchmark', 'pool': 'Pool'})
    figures = []
    for benchmark, found in frame.groupby('benchmark', sort=False):
        chart = (
            alt.Chart(found)
            .mark_circle(size=55, opacity=0.7)
            .encode(
                x=alt.X('pool:N', title='Label overlap', sort=None),
                xOffset=alt.XOffset('place:N', sort=list(_PLACES.domain)),
                y=alt.Y('gain:Q', title=_CHANGE),
                color=alt.Color('place:N', title=None, scale=_PLACES),
                tooltip=hover('class', 'pool', 'place', 'host_iou', 'gain'),
            )
        )
        caption = f'{benchmark}: change of each class under high, random and low overlap'
        figures.append(Figure(f'overlap-classes-{slug(benchmark)}', caption, finish(chart, zero=True)))
    return Findings([Table('overlap-places', 'Classes inside and outside the pool', table)], figures)


def class_gains(suite: Suite, views: Sequence[RunView]) -> Findings:
    """Change of IoU against the number of test images with the class, and classes sorted by their base IoU."""
    done = {
        (str(view.run.row), view.run.benchmark): view
        for view in views
        if view.run.experiment == 'main' and view.run.settings and view.state is State.DONE
    }
    found = Findings()
    sorted_ones = [(str(suite.growth), benchmark) for benchmark in suite.benchmarks]
    for draw, pairs in ((_against_images, suite.classes.items()), (_by_base, sorted_ones)):
        for pair in pairs:
            if pair in done:
                frame = frames.classes([done[pair]]).dropna(subset=['gain', 'host_iou'])
                title = f'{frame.host.iloc[0]} {frame.backbone.iloc[0]}, {frame.benchmark.iloc[0]}'
                found.figures.append(draw(slug('_'.join(pair)), title, frame))
                found.notes.append(f'{title}: {_in_numbers(frame)}')
    found.notes = list(dict.fromkeys(found.notes))
    return found


def _against_images(name: str, title: str, frame: pd.DataFrame) -> Figure:
    chart = alt.Chart(frame[frame.images > 0]).mark_circle(size=70, opacity=0.75)
    chart = chart.encode(
        **axes('images', 'Test images with the class', 'gain', _CHANGE, log=True),
        color=_COLOR,
        tooltip=hover('class', 'images', 'host_iou', 'tpa_iou', 'gain'),
    )
    caption = f'{title}: change of each class against its test images'
    return Figure(f'classes-images-{name}', caption, finish(chart, zero=True))


def _by_base(name: str, title: str, frame: pd.DataFrame) -> Figure:
    order = frame.sort_values('host_iou')['class'].tolist()
    names = alt.X('class:N', sort=order, title='Classes, from low to high base IoU')
    chart = alt.Chart(frame).mark_bar()
    chart = chart.encode(
        x=names.axis(labels=len(order) <= _NAMES, ticks=False),
        y=alt.Y('gain:Q', title=_CHANGE),
        color=_COLOR,
        tooltip=hover('class', 'host_iou', 'tpa_iou', 'gain'),
    )
    return Figure(f'classes-sorted-{name}', f'{title}: changes of classes, sorted by base IoU', finish(chart))


def _in_numbers(frame: pd.DataFrame) -> str:
    """The numbers under a figure. Args: frame: classes of one run."""
    rare = frame[frame.images.between(1, _RARE - 1)]
    share = f'{100 * (rare.gain > 0).mean():.0f} % of the {len(rare)} rare classes (below {_RARE} images) gain'
    relation = frame.gain.corr(frame.host_iou) if len(frame) > 2 else float('nan')
    correlation = 'not defined' if pd.isna(relation) else f'{relation:+.2f}'
    few = share if len(rare) else f'no class is rare (below {_RARE} images)'
    return f'{few}; the correlation of gain and base IoU is {correlation}.'


def claim_table(suite: Suite, views: Sequence[RunView]) -> Table:
    """The claims of the paper's text, from our numbers, from the paper's cells, and as it prints them."""
    ours = {claim.title: claim for claim in claims(measured(views))}
    theirs = {claim.title: claim for claim in claims(paper.scores())} if suite.name == 'paper' else {}
    rows = []
    for title in dict.fromkeys((*theirs, *ours)):
        mine, printed = ours.get(title), theirs.get(title)
        cells = mine.cells if mine is not None else 0
        digits = 0 if title == 'negative cells' else 2
        value, said = (None if one is None else one.value for one in (mine, printed))
        text = '' if printed is None or printed.printed is None else f'{printed.printed:g}'
        numbers = [float('nan') if number is None else number for number in (value, said)]
        rows.append((title[0].upper() + title[1:], Cell(*numbers, digits=digits), cells, text))
    ours_and = "Ours, and from the paper's cells" if theirs else 'Ours'
    frame = pd.DataFrame(rows, columns=['Claim', ours_and, 'Cells of ours', "In the paper's text"])
    return Table('claims', 'Claims of the text, in points of mIoU', frame if theirs else frame.iloc[:, :3])


def comparison_tables(suite: Suite, views: Sequence[RunView], cells: pd.DataFrame) -> list[Table]:
    """Rows of other methods on the same hosts, and ResCLIP on the host of the ablations beside TPA."""
    others = {view.run.name for view in views if not view.run.settings}
    mine = cells[cells.run.isin(others)]
    if mine.empty:
        return []
    name = mine.experiment.iloc[0]
    frame = wide(mine, ['host', 'backbone'], digits=1).rename(columns=str.capitalize)
    found = [Table(f'{name}-comparisons', 'mIoU of other methods on the same hosts', frame)]
    rows = [suite.ablation, suite.ablation._replace(variant='resclip')]
    runs = {f'{row}_{benchmark}' for row in rows for benchmark in suite.benchmarks}
    beside = cells[cells.run.isin(runs) & cells.quantity.isin(['base', 'tpa'])]
    if name == 'main' and beside.run.isin(others).any():
        beside = beside.assign(host=beside.host + beside.quantity.map({'base': '', 'tpa': ' + TPA'}))
        frame = wide(beside, ['host', 'backbone'], digits=1).rename(columns=str.capitalize)
        found.append(Table('main-resclip', 'ResCLIP and TPA on the same host (mIoU)', frame))
    return found
