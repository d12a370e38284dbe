"""What the paper's figures show, from results: gains along axes, pools and their classes, gains of classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import altair as alt
import pandas as pd

from ...datasets.pool import DEFAULT_SIZE
from .. import frames
from ..folders import RunView, State
from ..suite import Suite
from .figures import BACKBONES, BENCHMARKS, axes, dashed, hover, slug
from .section import Section
from .tables import Cell

#: Experiment -> its runs.
Runs = Mapping[str, Sequence[RunView]]
# A class of fewer test images is rare.
_RARE = 50
# Sizes of banks in a table: where the paper reads off how much of the gain is reached, the usual pool, all images.
_REACHED = {'share-0.1': '10 %', 'full': f'{DEFAULT_SIZE} images', 'share-1': 'all images'}
# More names than this do not fit below a figure.
_NAMES = 40
_GAIN, _CHANGE = 'Gain in mIoU', 'Change of IoU'
_COLOR = alt.condition('datum.gain >= 0', alt.value('#2a9d62'), alt.value('#d1495b'))
_PLACES = alt.Scale(domain=['in the pool', 'not in the pool'], range=['#2a9d62', '#d1495b'])


def gains(section: Section, cells: pd.DataFrame) -> None:
    """Gain against every axis of an experiment: a line for each benchmark, broken where it is the paper's."""
    found = cells[(cells.quantity == 'gain') & cells.axis.ne('') & cells.value.notna()]
    for axis, points in found.groupby('axis', sort=False):
        names = ['benchmark', 'title', 'value']
        lines = points.melt(names, ['ours', 'paper'], var_name='source', value_name='gain').dropna()
        if not lines.source.eq('ours').any():
            continue
        lines['value'] *= 100 if axis.endswith('%') else 1
        tooltip = hover('benchmark', 'title', 'source', 'gain')
        chart = alt.Chart(lines).encode(**axes('value', axis, 'gain', _GAIN), color=BENCHMARKS, tooltip=tooltip)
        marks = chart.mark_line(point=alt.OverlayMarkDef(size=55))
        if axis.startswith('seed'):
            seeds = alt.X('value:O', title=axis, axis=alt.Axis(labelAngle=0))
            marks = chart.mark_point(filled=True, size=70).encode(x=seeds)
        elif lines.source.nunique() > 1:
            marks = marks.encode(strokeDash=dashed('source', 'ours', 'paper'))
        name = f'{section.name}-{slug(axis)}' if found.axis.nunique() > 1 else section.name
        section.draw(name, f'Gain against {axis.removesuffix(", %")}', marks, zero=True)


def follows(section: Section, frame: pd.DataFrame) -> None:
    """Gain of consistent TPA over the paper's against how far labels follow the image. Args: frame: from frames."""
    found = frame.rename(columns={'Consistent TPA': 'gain', 'kappa_0 / kappa_inf': 'follows'})
    found = found.rename(columns=str.lower).dropna(subset=['follows', 'gain'])
    if found.empty:
        return
    places = axes('follows', 'kappa_0 / kappa_inf', 'gain', 'Gain in mIoU over TPA')
    tips = hover('host', 'backbone', 'benchmark', 'gain', 'follows')
    chart = alt.Chart(found).encode(**places, color=alt.Color('host:N', title=None, sort=None), tooltip=tips)
    points = chart.mark_point(filled=True, size=70)
    caption = "Gain of consistent TPA over the paper's against how far labels follow the image, host by host"
    section.draw('consistency', caption, points, zero=True)


def _grow(
    section: Section, name: str, caption: str, frame: pd.DataFrame, x: tuple[str, str], y: tuple[str, str]
) -> None:
    """Draws lines against the size of the pool, one for each benchmark, with a mark where the pool is the usual one.

    Args:
        section: Where the figure goes.
        name, caption: Those of the figure.
        frame: With ``benchmark``, ``setting``, ``images``.
        x, y: Column and title of each axis.
    """
    tooltip = hover('benchmark', 'images', y[0])
    chart = alt.Chart(frame).encode(**axes(*x, *y, log=True), color=BENCHMARKS, tooltip=tooltip)
    layers = [chart.mark_line(point=alt.OverlayMarkDef(size=40))]
    if frame.setting.eq('full').any():
        usual = chart.transform_filter('datum.setting == "full"')
        layers.append(usual.mark_point(shape='diamond', size=180, strokeWidth=2))
    section.draw(name, caption, *layers)


def growth(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    """Gain against the share of the test images in the bank, and how much of it an early point has."""
    frame = frames.bank_sizes(runs['bank-size'])
    if frame.empty:
        return
    reached = frame.pivot_table(index='benchmark', columns='setting', values='gain', sort=False)
    reached = reached.reindex(columns=list(_REACHED)).reset_index()
    *parts, everything = _REACHED
    for name in parts:
        share = 100 * reached[name] / reached[everything].where(reached[everything] > 0)
        reached[f'{name} share'] = share.round()
    columns = [f'Gain at {title}' for title in _REACHED.values()] + [f'{_REACHED[name]}: % of all' for name in parts]
    section.tabulate('bank-size-reached', 'Share of the final gain that is reached', reached, ['Benchmark', *columns])
    share, images, gain = ('share', 'Share of the test images, %'), ('images', 'Images in the bank'), ('gain', _GAIN)
    _grow(section, 'bank-size-share', 'Gain against the share of the test images', frame, share, gain)
    _grow(section, 'bank-size-images', 'Gain against the number of images', frame, images, gain)


def repetitions(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    """Classes that are seen again, by labels, and beside them the classes that the banks of ``bank-size`` cover."""
    frame, banks = frames.repetition(runs['repetition']), frames.bank_sizes(runs['bank-size'])
    names = ['Benchmark', 'Seen by', 'Images', 'At least', 'Classes, %']
    shares = frame.drop(columns=['expected', 'classes'])
    section.tabulate('repetition', 'All numbers', shares, names, numbers=True)
    pool, share = ('images', 'Images in the pool'), ('share', 'Classes, %')
    if len(frame):
        twice = shares[shares.at_least == 2].assign(setting='')
        _grow(section, 'repetition', 'Classes that appear at least twice', twice, pool, share)
        _expected(section, frame)
    if len(banks):
        bank, covered = ('images', 'Images in the bank'), ('covered', 'Classes with a prototype, %')
        _grow(section, 'coverage', 'Coverage of banks, from anchors', banks, bank, covered)


def _expected(section: Section, frame: pd.DataFrame) -> None:
    """How many classes the usual pool sees how often. Args: frame: from :func:`~..frames.repetition`."""
    usual = frame.groupby('benchmark').images.transform('max').clip(upper=DEFAULT_SIZE)
    found = frame[frame.images == usual].assign(seen=lambda rows: '≥ ' + rows.at_least.astype(str))
    found = found[['benchmark', 'seen', 'expected', 'classes']]
    table = found.pivot_table('expected', ['benchmark', 'classes'], 'seen', 'first', sort=False)
    table = table.reset_index().rename(columns={'benchmark': 'Benchmark', 'classes': 'Classes'})
    section.tabulate('repetition-expected', f'Classes expected so often in {DEFAULT_SIZE} images', table)
    order = list(dict.fromkeys(found.seen))
    chart = alt.Chart(found).encode(
        x=alt.X('benchmark:N', title=None, sort=None, axis=alt.Axis(labelAngle=-35)),
        xOffset=alt.XOffset('seen:N', sort=order),
        y=alt.Y('expected:Q', title='Expected classes'),
        color=alt.Color('seen:N', title='Images with the class', sort=order),
        tooltip=hover('benchmark', 'seen', 'expected', 'classes'),
    )
    section.draw('repetition-expected', f'Classes expected in a bank of {DEFAULT_SIZE} images', chart.mark_bar())


def overlaps(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    """The pools, and the change of every class under each, inside the pool and outside it."""
    names = ['Benchmark', 'Pool', 'Overlap, %', 'Classes shared, %', 'Pool images']
    found = frames.overlap(runs['overlap'])
    if found.empty:
        return
    section.tabulate('overlap-pools', 'The pools, and the evaluated classes that they share', found, names)
    rows = []
    for labels, result, one in frames.variants(runs['overlap']):
        shared = next((split.shared for split in result.overlap if split.key == one.key), ())
        for entry in one.per_class:
            if entry.support and entry.gain is not None:
                place = _PLACES.domain[entry.name not in shared]
                rows.append((labels['benchmark'], one.key, entry.name, place, entry.host_iou, entry.gain))
    frame = pd.DataFrame(rows, columns=['benchmark', 'pool', 'class', 'place', 'host_iou', 'gain'])
    means = frame.groupby(['benchmark', 'pool', 'place'], sort=False).gain.agg(['size', 'mean']).unstack('place')
    means = means.swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False).round(2)
    means.columns = [f'{"Classes" if kind == "size" else "Mean gain"} {place}' for place, kind in means.columns]
    table = means.reset_index().rename(columns={'benchmark': 'Benchmark', 'pool': 'Pool'})
    section.tabulate('overlap-places', 'Classes inside and outside the pool', table)
    for benchmark, found in frame.groupby('benchmark', sort=False):
        _under_overlap(section, benchmark, found)


def _under_overlap(section: Section, benchmark: str, frame: pd.DataFrame) -> None:
    """A point for each class under each overlap, beside each other as far as there is room, and their means."""
    # Multiples of the golden ratio spread any number of points evenly.
    spread = frame.groupby(['pool', 'place']).cumcount() * 0.618 % 1
    chart = alt.Chart(frame.assign(beside=frame.place.eq(_PLACES.domain[1]) + 0.1 + 0.8 * spread)).encode(
        x=alt.X('pool:N', title='Label overlap', sort=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset('beside:Q', scale=alt.Scale(domain=[0, 2])),
        y=alt.Y('gain:Q', title=_CHANGE),
        color=alt.Color('place:N', title=None, scale=_PLACES),
    )
    points = chart.mark_circle(size=45, opacity=0.6).encode(tooltip=hover('class', 'pool', 'place', 'host_iou', 'gain'))
    means = chart.mark_tick(size=36, thickness=3)
    means = means.encode(y=alt.Y('mean(gain):Q', title=_CHANGE), xOffset='mean(beside):Q')
    caption = f'{benchmark}: change of each class under high, random and low overlap (bars: means)'
    section.draw(f'overlap-classes-{slug(benchmark)}', caption, points, means, zero=True)


def times(section: Section, frame: pd.DataFrame, steps: Iterable[str]) -> None:
    """Milliseconds of every step with their quartiles. Args: steps: their names for people, in order."""
    found = frame[frame.step.isin(steps) & frame['median'].notna()]
    if found.empty:
        return
    chart = alt.Chart(found).encode(
        y=alt.Y('step:N', title=None, sort=list(steps), axis=alt.Axis(labelLimit=220)),
        yOffset=alt.YOffset('backbone:N', sort=None),
        tooltip=hover('host', 'backbone', 'step', 'median', 'low', 'high', 'paper'),
    )
    bars = chart.mark_bar().encode(x=alt.X('median:Q', title='Milliseconds per image'), color=BACKBONES)
    spread = chart.mark_rule(strokeWidth=1.5).encode(x='low:Q', x2='high:Q')
    section.draw('cost', 'Time of every step: median and quartiles', bars, spread)


def class_gains(section: Section, suite: Suite, views: Sequence[RunView]) -> None:
    """Change of IoU against the number of test images with the class, and classes sorted by their base IoU."""
    done = {
        view.run.name: view
        for view in views
        if view.run.experiment == 'main' and view.run.settings and view.state is State.DONE
    }
    sorted_ones, rows = [f'{suite.growth}_{benchmark}' for benchmark in suite.benchmarks], {}
    for draw, runs in ((_against_images, suite.classes), (_by_base, sorted_ones)):
        for run in runs:
            if run in done:
                frame = frames.classes([done[run]]).dropna(subset=['gain', 'host_iou'])
                title = f'{frame.host.iloc[0]} {frame.backbone.iloc[0]}, {frame.benchmark.iloc[0]}'
                draw(section, slug(run), title, frame)
                rows[title] = _in_numbers(frame)
    if rows:
        names = ['Rare classes', 'Of these gain, %', 'Correlation of gain and base IoU']
        table = pd.DataFrame.from_dict(rows, 'index', columns=names).reset_index(names='Host and benchmark')
        section.tabulate('classes', f'The figures in numbers; rare classes are in fewer than {_RARE} images', table)


def _against_images(section: Section, name: str, title: str, frame: pd.DataFrame) -> None:
    tooltip = hover('class', 'images', 'host_iou', 'tpa_iou', 'gain')
    frame = frame[frame.images > 0]
    log = bool(frame.images.max() > 5 * frame.images.min())
    place = axes('images', 'Test images with the class', 'gain', _CHANGE, log)
    chart = alt.Chart(frame).encode(**place, color=_COLOR, tooltip=tooltip)
    caption = f'{title}: change of each class against its test images'
    section.draw(f'classes-images-{name}', caption, chart.mark_circle(size=70, opacity=0.75), zero=True)


def _by_base(section: Section, name: str, title: str, frame: pd.DataFrame) -> None:
    order = frame.sort_values('host_iou')['class'].tolist()
    names = alt.X('class:N', sort=order, title='Classes, from low to high base IoU')
    chart = alt.Chart(frame).encode(
        x=names.axis(labels=len(order) <= _NAMES, ticks=False),
        y=alt.Y('gain:Q', title=_CHANGE),
        color=_COLOR,
        tooltip=hover('class', 'host_iou', 'tpa_iou', 'gain'),
    )
    section.draw(f'classes-sorted-{name}', f'{title}: changes of classes, sorted by base IoU', chart.mark_bar())


def _in_numbers(frame: pd.DataFrame) -> tuple[int, float, Cell]:
    """Rare classes, percent of them that gain, correlation of gain and base IoU. Args: frame: classes of one run."""
    rare = frame[frame.images.between(1, _RARE - 1)]
    correlation = frame.gain.corr(frame.host_iou) if len(frame) > 2 else float('nan')
    return len(rare), round(100 * (rare.gain > 0).mean(), 0), Cell(correlation, digits=2, signed=True)
