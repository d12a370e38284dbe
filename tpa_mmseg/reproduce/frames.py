"""Results as pandas frames, one for each kind of number. Tables, figures and comparisons are made of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from .experiments import EXPERIMENTS, planned_images, suite_of
from .folders import RunView, State
from .reference import TOLERANCE, cost_reference, reference
from .runs import Run

#: What identifies a number across machines and versions.
KEY = ['suite', 'experiment', 'run', 'setting', 'quantity']
_CELLS = [*KEY, 'host', 'backbone', 'benchmark', 'title', 'axis', 'value', 'ours', 'paper', 'state']


def labels(run: Run) -> dict[str, str]:
    """Names of a run, for people and for programs."""
    suite = suite_of(run.suite)
    return {
        'suite': run.suite,
        'experiment': run.experiment,
        'run': run.name,
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
    frame = pd.DataFrame(rows, columns=_CELLS).astype({name: float for name in ('value', 'ours', 'paper')})
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


def classes(views: Iterable[RunView], setting: str = 'full') -> pd.DataFrame:
    """Every class of finished runs in one setting of TPA."""
    rows = []
    for view in views:
        found = view.result.variant(setting) if view.state is State.DONE else None
        for entry in found.per_class if found else ():
            rows.append({**labels(view.run), 'class': entry.name, **vars(entry)})
    names = ('host_iou', 'tpa_iou', 'gain', 'support', 'images', 'anchors')
    frame = pd.DataFrame(rows, columns=['run', 'host', 'backbone', 'benchmark', 'class', *names])
    return frame.astype({name: float for name in names})


def repetition(views: Iterable[RunView]) -> pd.DataFrame:
    """How many of the classes pools of growing size see again, in percent."""
    rows = [
        (labels(view.run)['benchmark'], curve.source, size, int(times), 100 * share)
        for view in views
        if view.result is not None
        for curve in view.result.repetition
        for times, shares in curve.at_least.items()
        for size, share in zip(curve.sizes, shares, strict=False)
    ]
    return pd.DataFrame(rows, columns=['benchmark', 'source', 'images', 'at_least', 'share'])


def overlap(views: Iterable[RunView]) -> pd.DataFrame:
    """The pools of the experiment ``overlap``, in percent."""
    rows = [
        (labels(view.run)['benchmark'], split.key, 100 * split.overlap, 100 * split.classes_shared, split.pool_images)
        for view in views
        if view.result is not None
        for split in view.result.overlap
    ]
    return pd.DataFrame(rows, columns=['benchmark', 'pool', 'overlap', 'classes_shared', 'pool_images'])


def cost(views: Sequence[RunView]) -> pd.DataFrame:
    """Milliseconds of every step and megabytes of what is kept, with the paper's numbers (of an A100)."""
    rows = []
    for view in views:
        printed = cost_reference(view.run)
        found = view.result.cost if view.result is not None else None
        times = {} if found is None else {name: vars(timing) for name, timing in found.columns.items()}
        kept = 'prototypes_kb', 'bank_mb', 'cache_mb_per_image'
        sizes = {} if found is None else {name: getattr(found, name) for name in kept}
        for step in dict.fromkeys((*times, *sizes, *printed)):
            entry = times.get(step, {'median': sizes.get(step)})
            rows.append({**labels(view.run), 'step': step, **entry, 'paper': printed.get(step)})
    names = ('median', 'low', 'high', 'repeats', 'paper')
    frame = pd.DataFrame(rows, columns=['run', 'host', 'backbone', 'benchmark', 'step', *names])
    return frame.astype({name: float for name in names})


def consistency(views: Sequence[RunView]) -> pd.DataFrame:
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
