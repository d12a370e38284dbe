"""``check``: are finished runs near enough to the paper?"""

from __future__ import annotations

import argparse
import sys

from ...catalog import paper
from ...console import print_table, signed
from ...errors import printable
from ..folders import State
from ..frames import cells
from . import selected


def main(args: argparse.Namespace) -> None:
    views = selected(args, args.experiment)
    found = cells(views, args.tolerance).dropna(subset='difference')
    outside = found[found.outside]
    if len(outside):
        columns = ['experiment', 'run', 'setting', 'quantity', 'ours', 'paper']
        rows = outside[columns].assign(difference=outside.difference.map(signed))
        print_table(['Experiment', 'Run', 'Setting', 'Number', 'Ours', 'Paper', 'Difference'], rows.values.tolist())
    done = sum(view.state is State.DONE for view in views)
    failed = [view for view in views if view.state is State.FAILED]
    print(
        f'{done} of {len(views)} runs are done; {len(found)} of their numbers are in the paper, '
        f'{len(outside)} of these are more than {args.tolerance:g} points from it.'
    )
    if len(found):
        print(paper.about_base_rows())
    for one in failed:
        print(printable(f'failed: {one.run.experiment} {one.run.name}: {one.error}'), file=sys.stderr)
    if len(outside) or failed:
        sys.exit(1)
