"""``collect``: all results of a work directory in one small file, to publish or to take home."""

from __future__ import annotations

import argparse

from ...errors import TPAError
from ..sources import Source, write_results
from ..suite import SUITES


def main(args: argparse.Namespace) -> None:
    source = Source(args.work_dir)
    results = [view.result for name in args.suite or SUITES for view in source.views(name) if view.result is not None]
    if not results:
        raise TPAError(f'There are no results in {args.work_dir}: run experiments first, or give another --work-dir.')
    write_results(args.out, results)
    print(f'{args.out}: {len(results)} results, {args.out.stat().st_size / 1e6:.2f} MB.')
