"""Results as pandas frames, one for each kind of number. Tables, figures and comparisons are made of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

from .experiments import EXPERIMENTS, planned_images, suite_of
from .folders import RunView
from .reference import TOLERANCE, cost_reference, reference
from .results import RunResult, VariantResult
from .runs import Run

#: What identifies a number across machines and versions.
KEY = ['suite', 'experiment', 'run', 'setting', 'quantity']
_NAMES = [*KEY, 'row', 'host', 'backbone', 'benchmark', 'title', 'axis', 'state']


def labels(run: Run) -> dict[str, str]:
    """Names of a run, for people and for programs."""
    suite = suite_of(run.suite)
    return {
        'suite': run.suite,
        'experiment': run.experiment,
        'run': run.name,
        'row': str(run.row),
        'host': suite.hosts[run.row.host] + suite.variants.get(run.row.variant, ''),
        'backbone': suite.backbones[run.row.backbone],
        'benchmark': suite.benchmarks[run.benchmark],
    }


def partial(view: RunView) -> str:
    """How many of the planned images a finished run is about, where it is not all; else nothing."""
    planned = planned_images(view.run)
    if view.result is None or not planned or view.result.images == planned:
        return ''
    return f'{view.result.images:,} of {planned:,} images'


def cells(views: Iterable[RunView], tolerance: float = TOLERANCE) -> pd.DataFrame:
    """Every mIoU that a table has: ours, the paper's, and their difference.

    Args:
        views: Runs; those that score nothing are left out.
        tolerance: How far from the paper is ``outside``, in points.

    Returns:
        A row for the base of every run, and for TPA and gain of each of its settings. Missing numbers are NaN.
    """
    rows = [row for view in views if EXPERIMENTS[view.run.experiment].scored for row in _cells_of(view)]
    frame = _frame(rows, _NAMES, ['value', 'ours', 'paper'])
    frame['axis'] = frame['axis'].fillna('')
    frame['difference'] = (frame.ours - frame.paper).round(2)
    frame['outside'] = frame.difference.abs() > tolerance
    return frame


def _cells_of(view: RunView) -> Iterator[dict]:
    run, result = view.run, view.result
    state = ', '.join(filter(None, (view.state.value.replace('waiting', 'not run'), partial(view))))
    common = {**labels(run), 'state': state}
    base = None if result is None or result.host is None else result.host.mIoU
    yield {**common, 'setting': '', 'title': '', 'quantity': 'base', 'ours': base, 'paper': reference(run).base}
    for setting in run.settings:
        found = None if result is None else result.variant(setting.key)
        printed = reference(run, setting.key)
        place = setting.value if found is None else found.value
        own = {'setting': setting.key, 'title': setting.title, 'axis': setting.axis, 'value': place}
        for quantity in ('tpa', 'gain'):
            ours = None if found is None else getattr(found, quantity).mIoU
            yield {**common, **own, 'quantity': quantity, 'ours': ours, 'paper': getattr(printed, quantity)}


def compared(*sides: tuple[Iterable[RunView], str]) -> pd.DataFrame:
    """Every number of either side, with their difference, B minus A.

    Args:
        sides: For A and B, runs, and the column of :func:`cells` that is meant: ours or the paper's.
    """
    a, b = (cells(views).set_index(KEY)[column].dropna() for views, column in sides)
    both = pd.concat({'A': a, 'B': b}, axis=1).reindex(a.index.union(b.index, sort=False))
    both['Difference'] = (both.B - both.A).round(2)
    return both.reset_index().rename(columns={**{name: name.capitalize() for name in KEY}, 'quantity': 'Number'})


def verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for every row that the paper prints: whether ours agrees. Args: frame: from :func:`cells`."""
    printed = frame[frame.paper.notna()]
    rows = printed.groupby(['experiment', 'host', 'backbone', 'title'], sort=False)
    found = rows.agg(cells=('paper', 'size'), run=('ours', 'count'), outside=('outside', 'sum')).reset_index()
    found['verdict'] = 'incomplete'
    found.loc[found.run == 0, 'verdict'] = 'not run'
    found.loc[found.run == found.cells, 'verdict'] = 'agrees'
    found.loc[found.outside > 0, 'verdict'] = 'differs'
    return found


def variants(views: Iterable[RunView]) -> Iterator[tuple[dict[str, str], RunResult, VariantResult]]:
    """Names, result and variant of everything that was scored with TPA."""
    for view in views:
        for variant in view.result.variants if view.result is not None else ():
            yield labels(view.run), view.result, variant


def _frame(rows: list[dict], names: list[str], numbers: list[str]) -> pd.DataFrame:
    """Rows with these columns, missing ones empty. Args: names, numbers: columns of text, and of floats."""
    return pd.DataFrame(rows, columns=[*names, *numbers]).astype(dict.fromkeys(numbers, float))


def classes(views: Iterable[RunView], setting: str = 'full') -> pd.DataFrame:
    """Every class of finished runs in one setting of TPA."""
    rows = [
        {**names, 'class': entry.name, **vars(entry)}
        for names, _, variant in variants(views)
        if variant.key == setting
        for entry in variant.per_class
    ]
    numbers = ['host_iou', 'tpa_iou', 'gain', 'support', 'images', 'anchors']
    return _frame(rows, ['run', 'host', 'backbone', 'benchmark', 'class'], numbers)


def bank_sizes(views: Iterable[RunView]) -> pd.DataFrame:
    """Gain and covered classes of every bank of the experiment ``bank-size``; both shares in percent."""
    rows = [
        (names['benchmark'], one.key, 100 * one.value, one.bank.images, one.gain.mIoU, one.bank.percent_covered)
        for names, _, one in variants(views)
        if one.bank is not None and one.value is not None
    ]
    return pd.DataFrame(rows, columns=['benchmark', 'setting', 'share', 'images', 'gain', 'covered'])


def repetition(views: Iterable[RunView]) -> pd.DataFrame:
    """How many of the classes pools of growing size see again: percent, and the expected number."""
    rows = [
        (labels(view.run)['benchmark'], curve.source, size, int(times), round(100 * share, 4))
        + (curve.expected(int(times), size), curve.num_classes)
        for view in views
        if view.result is not None
        for curve in view.result.repetition
        for times, shares in curve.at_least.items()
        for size, share in zip(curve.sizes, shares, strict=False)
    ]
    names = ['benchmark', 'source', 'images', 'at_least', 'share', 'expected', 'classes']
    return pd.DataFrame(rows, columns=names)


def overlap(views: Iterable[RunView]) -> pd.DataFrame:
    """The pools of the experiment ``overlap``, in percent."""
    rows = [
        (labels(view.run)['benchmark'], split.key)
        + (round(100 * split.overlap), round(100 * split.classes_shared), split.pool_images)
        for view in views
        if view.result is not None
        for split in view.result.overlap
    ]
    return pd.DataFrame(rows, columns=['benchmark', 'pool', 'overlap', 'classes_shared', 'pool_images'])


def cost(views: Iterable[RunView]) -> pd.DataFrame:
    """Milliseconds of every step and megabytes of what is kept, with the paper's numbers (of an A100)."""
    rows = []
    for view in views:
        printed = cost_reference(view.run)
        found = view.result.cost if view.result is not None else None
        ours = {} if found is None else {name: vars(timing) for name, timing in found.columns.items()}
        for name in ('prototypes_kb', 'bank_mb', 'cache_mb_per_image') if found is not None else ():
            ours[name] = {'median': getattr(found, name)}
        for step in dict.fromkeys((*ours, *printed)):
            rows.append({**labels(view.run), 'step': step, **ours.get(step, {}), 'paper': printed.get(step)})
    numbers = ['median', 'low', 'high', 'repeats', 'paper']
    return _frame(rows, ['run', 'host', 'backbone', 'benchmark', 'step'], numbers)


def consistency(views: Iterable[RunView]) -> pd.DataFrame:
    """A row for each run of the experiment ``consistency`` that is done."""
    rows = []
    for view in views:
        full = view.result and view.result.variant('full')
        if not full:
            continue
        name = [labels(view.run)[part] for part in ('host', 'backbone', 'benchmark')]
        row = dict(zip(('Host', 'Backbone', 'Benchmark'), name, strict=True))
        row |= {'Host alone': view.result.host.mIoU, 'TPA': full.tpa.mIoU}
        others = {setting.key: setting.title for setting in view.run.settings if setting.key != 'full'}
        for key, title in others.items():
            row[title] = round(view.result.variant(key).tpa.mIoU - full.tpa.mIoU, 2)
        found = view.result.variant('consistent').bank.diagnosis
        share = found['kappa_0'] / found['kappa_inf'] if found.get('kappa_inf') else float('nan')
        row |= {part: round(found.get(part, float('nan')), 3) for part in ('kappa_0', 'kappa_inf', 'rho', 'beta2')}
        rows.append({**row, 'kappa_0 / kappa_inf': round(share, 3)})
    return pd.DataFrame(rows)
