"""What the paper's figures show, from results: gains along axes, pools and their classes, gains of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from ...datasets.pool import DEFAULT_SIZE
from .. import frames
from ..folders import RunView, State
from ..suite import Suite
from .figures import slug
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


def gains(section: Section, cells: pd.DataFrame) -> None:
    """Gain against every axis of an experiment: a line for each benchmark, broken where it is the paper's."""
    found = cells[(cells.quantity == 'gain') & cells.axis.ne('') & cells.value.notna()]
    for axis, points in found.groupby('axis', sort=False):
        names = ['benchmark', 'title', 'value']
        lines = points.melt(names, ['ours', 'paper'], var_name='source', value_name='gain').dropna()
        if not lines.source.eq('ours').any():
            continue
        lines['value'] *= 100 if axis.endswith('%') else 1
        kind = 'gains_beside_the_paper' if lines.source.nunique() > 1 else 'gains'
        kind = 'gains_of_draws' if axis.startswith('seed') else kind
        name = f'{section.name}-{slug(axis)}' if found.axis.nunique() > 1 else section.name
        section.draw(name, lines, kind, axis.removesuffix(', %'), x={'title': axis})


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
    section.draw('bank-size-share', frame)
    section.draw('bank-size-images', frame)


def repetitions(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    """Classes that are seen again, by labels, and beside them the classes that the banks of ``bank-size`` cover."""
    frame, banks = frames.repetition(runs['repetition']), frames.bank_sizes(runs['bank-size'])
    names = ['Benchmark', 'Seen by', 'Images', 'At least', 'Classes, %']
    shares = frame.drop(columns=['expected', 'classes'])
    section.tabulate('repetition', 'All numbers', shares, names, numbers=True)
    if len(frame):
        section.draw('repetition', shares[shares.at_least == 2])
        _expected(section, frame)
    if len(banks):
        section.draw('coverage', banks)


def _expected(section: Section, frame: pd.DataFrame) -> None:
    """How many classes the usual pool sees how often. Args: frame: from :func:`~..frames.repetition`."""
    usual = frame.groupby('benchmark').images.transform('max').clip(upper=DEFAULT_SIZE)
    found = frame[frame.images == usual].assign(seen=lambda rows: '≥ ' + rows.at_least.astype(str))
    found = found[['benchmark', 'seen', 'expected', 'classes']]
    table = found.pivot_table('expected', ['benchmark', 'classes'], 'seen', 'first', sort=False)
    table = table.reset_index().rename(columns={'benchmark': 'Benchmark', 'classes': 'Classes'})
    section.tabulate('repetition-expected', f'Classes expected so often in {DEFAULT_SIZE} images', table)
    section.draw('repetition-expected', found)


def overlaps(section: Section, runs: Runs, cells: pd.DataFrame) -> None:
    """The pools, and the change of every class under each, inside the pool and outside it."""
    pools = frames.entries(runs['overlap'], 'overlap')
    if not pools:
        return
    table = pd.DataFrame(pools, columns=['benchmark', 'key', 'overlap', 'classes_shared', 'pool_images'])
    table[['overlap', 'classes_shared']] = (100 * table[['overlap', 'classes_shared']]).round()
    names = ['Benchmark', 'Pool', 'Overlap, %', 'Classes shared, %', 'Pool images']
    section.tabulate('overlap-pools', 'The pools, and the evaluated classes that they share', table, names)
    shared = {(one['run'], one['key'], name) for one in pools for name in one['shared']}
    frame = frames.classes(runs['overlap'], [one['key'] for one in pools]).rename(columns={'key': 'pool'})
    frame = frame[frame.support > 0].dropna(subset='gain')
    keys = frame[['run', 'pool', 'class']].itertuples(index=False, name=None)
    frame = frame.assign(place=['in the pool' if key in shared else 'not in the pool' for key in keys])
    means = frame.groupby(['benchmark', 'pool', 'place'], sort=False).gain.agg(['size', 'mean']).unstack('place')
    means = means.swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False).round(2)
    means.columns = [f'{"Classes" if kind == "size" else "Mean gain"} {place}' for place, kind in means.columns]
    table = means.reset_index().rename(columns={'benchmark': 'Benchmark', 'pool': 'Pool'})
    section.tabulate('overlap-places', 'Classes inside and outside the pool', table)
    # Beside each other as far as there is room: multiples of the golden ratio spread any number of points evenly.
    spread = frame.groupby(['benchmark', 'pool', 'place']).cumcount() * 0.618 % 1
    frame = frame.assign(beside=frame.place.eq('not in the pool') + 0.1 + 0.8 * spread)
    for benchmark, found in frame.groupby('benchmark', sort=False):
        section.draw(f'overlap-classes-{slug(benchmark)}', found, 'overlap-classes', benchmark)


def class_gains(section: Section, suite: Suite, views: Sequence[RunView]) -> None:
    """Change of IoU against the number of test images with the class, and classes sorted by their base IoU.

    Args:
        section: Where the figures go.
        suite: Says which classes are shown.
        views: The runs of the main table.
    """
    done = {view.run.name: view for view in views if view.run.settings and view.state is State.DONE}
    chosen = [('classes-images', run) for run in suite.classes]
    chosen += [('classes-sorted', f'{suite.growth}_{benchmark}') for benchmark in suite.benchmarks]
    rows = {}
    for kind, run in chosen:
        if run in done:
            frame = frames.classes([done[run]]).dropna(subset=['gain', 'host_iou']).sort_values('host_iou')
            title = f'{frame.host.iloc[0]} {frame.backbone.iloc[0]}, {frame.benchmark.iloc[0]}'
            names = {'axis': {'labels': len(frame) <= _NAMES, 'ticks': False}} if kind == 'classes-sorted' else {}
            shown = frame[frame.images > 0] if kind == 'classes-images' else frame
            # Between numbers of one size a log axis has no ticks.
            near = kind == 'classes-images' and shown.images.max() <= 5 * shown.images.min()
            section.draw(f'{kind}-{slug(run)}', shown, f'{kind}-near' if near else kind, title, x=names)
            rows[title] = _in_numbers(frame)
    if rows:
        columns = ['Rare classes', 'Of these gain, %', 'Correlation of gain and base IoU']
        table = pd.DataFrame.from_dict(rows, 'index', columns=columns).reset_index(names='Host and benchmark')
        section.tabulate('classes', f'The figures in numbers; rare classes are in fewer than {_RARE} images', table)


def _in_numbers(frame: pd.DataFrame) -> tuple[int, float, Cell]:
    """Rare classes, percent of them that gain, correlation of gain and base IoU. Args: frame: classes of one run."""
    rare = frame[frame.images.between(1, _RARE - 1)]
    correlation = frame.gain.corr(frame.host_iou) if len(frame) > 2 else float('nan')
    return len(rare), round(100 * (rare.gain > 0).mean(), 0), Cell(correlation, digits=2, signed=True)
