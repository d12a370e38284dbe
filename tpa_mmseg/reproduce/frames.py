"""Results as pandas frames, one for each kind of number, and what the paper prints beside them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..catalog import paper
from .experiments import EXPERIMENTS, planned_images, suite_of
from .folders import RunView
from .runs import Run

#: How far a result may be from the paper, in percentage points of mIoU.
TOLERANCE = 1.5
#: What identifies a number across machines and versions.
KEY = ['suite', 'experiment', 'run', 'setting', 'quantity']
_NAMES = [*KEY, 'row', 'host', 'backbone', 'benchmark', 'title', 'axis', 'state']


@dataclass(frozen=True)
class Reference:
    """mIoU in the paper, None where it prints nothing.

    Args:
        base: The host alone (with its variant).
        tpa: With the setting of TPA.
        gain: The difference that the paper prints, or that of its two numbers.
    """

    base: float | None = None
    tpa: float | None = None
    gain: float | None = None


def reference(run: Run, setting: str = 'full') -> Reference:
    """The paper's numbers of a run with a setting of TPA; nothing for suites other than the paper's."""
    # The evaluation images of the overlap splits are only a part of the test set; the paper has no consistent TPA.
    if run.suite != 'paper' or run.experiment in ('overlap', 'consistency'):
        return Reference()
    row = str(run.row)
    base = paper.score(row, run.benchmark)
    # Of ablations the paper prints nothing but gains.
    gain = paper.gain(run.experiment, row, setting, run.benchmark)
    if gain is not None:
        return Reference(base, None, gain)
    tpa = paper.score(row, run.benchmark, tpa=True) if setting == 'full' else None
    return Reference(base, tpa, None if None in (base, tpa) else round(tpa - base, 2))


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
    cases = {'differs': found.outside > 0, 'not run': found.run == 0, 'agrees': found.run == found.cells}
    return found.assign(verdict=np.select(list(cases.values()), list(cases), 'incomplete'))


def entries(views: Iterable[RunView], section: str) -> list[dict]:
    """Every entry of a section of finished runs: its fields, and the names of its run."""
    done = (view for view in views if view.result is not None)
    return [{**labels(view.run), **vars(entry)} for view in done for entry in getattr(view.result, section)]


def classes(views: Iterable[RunView], settings: Collection[str] = ('full',)) -> pd.DataFrame:
    """Every class of finished runs in some settings of TPA."""
    variants = [one for one in entries(views, 'variants') if one['key'] in settings]
    rows = [{**one, **vars(entry), 'class': entry.name} for one in variants for entry in one['per_class']]
    numbers = ['host_iou', 'tpa_iou', 'gain', 'support', 'images', 'anchors']
    return _frame(rows, ['run', 'host', 'backbone', 'benchmark', 'key', 'class'], numbers)


def bank_sizes(views: Iterable[RunView]) -> pd.DataFrame:
    """Gain and covered classes of every bank of the experiment ``bank-size``; both shares in percent."""
    variants = [one for one in entries(views, 'variants') if one['bank'] is not None and one['value'] is not None]
    rows = [
        (one['benchmark'], one['key'], 100 * one['value'], bank.images, one['gain'].mIoU, bank.percent_covered)
        for one, bank in ((one, one['bank']) for one in variants)
    ]
    return pd.DataFrame(rows, columns=['benchmark', 'setting', 'share', 'images', 'gain', 'covered'])


def repetition(views: Iterable[RunView]) -> pd.DataFrame:
    """How many of the classes pools of growing size see again: percent, and the expected number."""
    rows = [
        (one['benchmark'], one['source'], size, int(times), round(100 * share, 4), round(count * share, 2), count)
        for one, count in ((one, one['num_classes']) for one in entries(views, 'repetition'))
        for times, shares in one['at_least'].items()
        for size, share in zip(one['sizes'], shares, strict=False)
    ]
    return pd.DataFrame(rows, columns=['benchmark', 'source', 'images', 'at_least', 'share', 'expected', 'classes'])


def _frame(rows: list[dict], names: list[str], numbers: list[str]) -> pd.DataFrame:
    """Rows with these columns, missing ones empty. Args: names, numbers: columns of text, and of floats."""
    return pd.DataFrame(rows, columns=[*names, *numbers]).astype(dict.fromkeys(numbers, float))


def cost(views: Iterable[RunView], steps: Mapping[str, str]) -> pd.DataFrame:
    """Milliseconds of every step and megabytes of what is kept, with the paper's numbers (of an A100).

    Args:
        views: Runs.
        steps: Name of each step and size -> its title.
    """
    rows = []
    for view in views:
        found = view.result and view.result.cost
        sizes = {'prototypes_kb': paper.tables()['bank_kb'].get(view.run.benchmark)}
        printed = paper.costs(view.run.row.backbone) | sizes if view.run.suite == 'paper' else {}
        # Sizes are measured once, steps have a median and quartiles.
        ours = {} if not found else {name: {'median': size} for name, size in vars(found).items()}
        ours |= {} if not found else {name: vars(timing) for name, timing in found.columns.items()}
        about = {'classes': found.num_classes, 'image': ' × '.join(map(str, found.image_size))} if found else {}
        common = {**labels(view.run), 'classes': '–', 'image': '–', **about, 'note': '' if found else 'not run'}
        rows += [
            {**common, 'step': title, **ours.get(step, {}), 'paper': printed.get(step)} for step, title in steps.items()
        ]
    numbers = ['median', 'low', 'high', 'repeats', 'paper']
    return _frame(rows, ['host', 'backbone', 'benchmark', 'classes', 'image', 'step', 'note'], numbers)
