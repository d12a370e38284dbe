"""``check``: are finished runs near enough to the paper?"""

from __future__ import annotations

import argparse
import sys

from ...console import print_table, signed
from ...errors import printable
from ..folders import State
from ..reference import compare_all
from . import selected


def main(args: argparse.Namespace) -> None:
    views = selected(args, args.experiment)
    found = compare_all(views)
    outside = [comparison for comparison in found if not comparison.within(args.tolerance)]
    if outside:
        rows = [
            [c.run.experiment, c.run.name, c.setting or '', c.quantity, c.ours, c.paper, signed(c.difference)]
            for c in outside
        ]
        print_table(['Experiment', 'Run', 'Setting', 'Number', 'Ours', 'Paper', 'Difference'], rows)
    done = sum(view.state is State.DONE for view in views)
    failed = [view for view in views if view.state is State.FAILED]
    print(
        f'{done} of {len(views)} runs are done; {len(found)} of their numbers are in the paper, '
        f'{len(outside)} of these are more than {args.tolerance:g} points from it.'
    )
    for one in failed:
        print(printable(f'failed: {one.run.experiment} {one.run.name}: {one.error}'), file=sys.stderr)
    if outside or failed:
        sys.exit(1)
