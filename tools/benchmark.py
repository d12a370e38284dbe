#!/usr/bin/env python
"""Measures what the way we compute saves, as ratios in one run.

Times are medians of interleaved repetitions after a warm-up, in a fresh process per case. Peak memory is that of a
fresh process per figure, above what it holds once its inputs are made (see docs/performance.md).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tpa_tools.command import run_tool

SUITES = ('core', 'hosts')
CLOCKS = ('wall', 'cpu')


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('suite', nargs='?', default='core', choices=SUITES, help='what to measure (default: core)')
    parser.add_argument('--json', metavar='FILE', help='also write the report to this file')
    parser.add_argument('--threads', type=int, metavar='N', help='threads of PyTorch (default: its own choice)')
    parser.add_argument('--repeats', type=int, default=5, metavar='N', help='timed repetitions (default: 5)')
    parser.add_argument(
        '--clock', default='wall', choices=CLOCKS, help='time that passes, or time of computing: cpu for a busy machine'
    )
    parser.add_argument('--only', metavar='TEXT', help='measure only the cases whose name contains this')
    parser.add_argument('--markdown', action='store_true', help='print the table in Markdown')
    parser.add_argument('--quick', action='store_true', help='tiny problems, once: only to see that it runs')
    run_tool(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    import torch
    from tpa_tools.benchmarking.core_cases import core_cases
    from tpa_tools.benchmarking.host_cases import host_cases
    from tpa_tools.benchmarking.measure import machine, measure
    from tpa_tools.benchmarking.report import table

    from tpa_mmseg.console import print_table, render
    from tpa_mmseg.errors import TPAError
    from tpa_mmseg.io import write_json

    # A suite gives its cases, tiny ones when asked to be quick.
    suite = {'core': core_cases, 'hosts': host_cases}[args.suite]
    if args.threads:
        torch.set_num_threads(args.threads)
    about, entries = {**machine(), 'clock': args.clock}, []
    cases = [case for case in suite(args.quick) if (args.only or '') in case.name]
    if not cases:
        raise TPAError(f'No case of {args.suite} has {args.only!r} in its name: leave --only out to see all names.')
    for case in cases:
        print(f'measuring {case.title}, {case.setting} ...', file=sys.stderr, flush=True)
        entries.append(measure(case, 1 if args.quick else args.repeats, args.clock))
    if args.markdown:
        print(render(*table(entries), markdown=True))
    else:
        print_table(*table(entries))
    print('{cpu}, {cores} cores, {threads} threads, PyTorch {torch}, Python {python}, {clock} clock'.format(**about))
    if about['load'] > about['cores'] / 2:
        print(f'Other programs were running (load {about["load"]:.1f}): they slow the many short steps of a band most.')
    if args.quick:
        print('These problems are tiny and ran once: their ratios mean nothing.')
    if args.json:
        write_json(args.json, {'suite': args.suite, 'quick': args.quick, 'machine': about, 'cases': entries})


if __name__ == '__main__':
    main()
