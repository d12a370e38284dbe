"""``compare``: two machines, two commits, or ours and the paper, number by number."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import pandas as pd

from ...console import print_table, signed
from ...errors import TPAError
from ...io import atomic_write
from ..frames import KEY, cells
from ..report.tables import Table
from ..sources import Source
from ..suite import SUITES

_TITLES = {name: name.capitalize() for name in KEY} | {'quantity': 'Number'}
_PAPER = 'paper'


def main(args: argparse.Namespace) -> None:
    (a, origin_a), (b, origin_b) = (_load(name) for name in (args.a, args.b))
    both = side_by_side(a, b)
    shared = both.dropna(subset=['A', 'B'])
    far = shared[shared.Difference.abs() > args.tolerance]
    if len(far):
        rows = far.assign(Difference=far.Difference.map(signed)).rename(columns=_TITLES)
        print_table(list(rows.columns), rows.values.tolist())
    print(f'A: {args.a}, {origin_a}\nB: {args.b}, {origin_b}')
    print(
        f'{len(shared)} numbers are in both, {len(far)} of them differ by more than {args.tolerance:g} points; '
        f'{both.B.isna().sum()} are only in A, {both.A.isna().sum()} only in B.'
    )
    if args.out:
        with atomic_write(args.out, 'w') as file:
            file.write(Table('compare', '', both.rename(columns=_TITLES)).to_csv())
    if len(far):
        sys.exit(1)


def side_by_side(a: pd.Series, b: pd.Series) -> pd.DataFrame:
    """Every number of either, with their difference, B minus A. Args: a, b: mIoU by :data:`~..frames.KEY`."""
    both = pd.concat({'A': a, 'B': b}, axis=1).reindex(a.index.union(b.index, sort=False))
    both['Difference'] = (both.B - both.A).round(2)
    return both.reset_index()


def _load(name: str) -> tuple[pd.Series, str]:
    """The numbers of a source or of the paper, and where they come from."""
    source = Source(Path('.' if name == _PAPER else name))
    views = [view for suite in ([_PAPER] if name == _PAPER else SUITES) for view in source.views(suite)]
    found = cells(views).set_index(KEY)
    if name == _PAPER:
        return found.paper.dropna(), 'as printed'
    numbers = found.ours.dropna()
    if numbers.empty:
        raise TPAError(f'There are no scores in {name}: give a file that collect wrote, a work directory, or paper.')
    origins = [view.result.provenance for view in views if view.result is not None]
    counts = Counter(f'commit {(origin.commit or "unknown")[:12]} on {origin.device}' for origin in origins)
    return numbers, '; '.join(f'{count} runs of {text}' for text, count in counts.items())
