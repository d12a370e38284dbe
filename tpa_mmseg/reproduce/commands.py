"""The commands of tools/reproduce.py, which has their arguments. What needs pandas or Altair is imported on demand."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ..catalog import paper
from ..console import print_table, render, signed
from ..engine.config import parse_options
from ..errors import TPAError, printable
from ..io import atomic_write
from ..launch import LaunchOptions, launch
from .experiments import EXPERIMENTS, plan
from .folders import RunView, State
from .run import RunTask
from .sources import Source, write_results
from .suite import SUITES

_PAPER = 'paper'


def list_runs(args: argparse.Namespace) -> None:
    """The experiments and how far each is, or every run of some."""
    if args.experiment:
        columns, rows = ['Experiment', 'Run', 'Settings', 'State', 'Seconds', 'Why'], []
        for one in _selected(args, args.experiment):
            seconds = one.result and round(one.result.startup_seconds + one.result.seconds)
            cells = one.run.experiment, one.run.name, len(one.run.settings), one.state.value
            rows.append([*cells, seconds, one.error or ''])
    else:
        columns, rows = ['Experiment', 'What it shows', 'Runs', *(state.value for state in State)], []
        for name, experiment in EXPERIMENTS.items():
            states = Counter(one.state for one in _selected(args, [name]))
            rows.append([name, experiment.about, states.total(), *(states[state] for state in State)])
    print(render(columns, rows))


def run(args: argparse.Namespace) -> None:
    """Executes what has not been executed yet."""
    work_dir = args.work_dir.resolve()
    views, options = _selected(args, args.experiment), parse_options(args.cfg_options)
    if not views:
        raise TPAError('No run of these experiments passes --host, --backbone and --dataset: ask for fewer of them.')
    if not args.rerun:
        _refuse_other_settings(views, options)
    tasks = [RunTask(one.run, work_dir, options) for one in views]
    states = launch(tasks, LaunchOptions.of(args), work_dir / args.suite)
    if states[State.FAILED] and args.wait and not args.dry_run:
        sys.exit(1)


def _refuse_other_settings(views: list[RunView], cfg_options: dict) -> None:
    """Raises TPAError if a run was done with other settings: its results cannot be mixed with those of these."""
    others = [one for one in views if one.result is not None and not one.result.made_with(cfg_options)]
    if others:
        first = others[0]
        settings = ' '.join(f'{key}={value}' for key, value in first.result.cfg_options.items()) or 'none'
        raise TPAError(
            f'{len(others)} of these runs were done with other --cfg-options ({first.run.experiment} {first.run.name}: '
            f'{settings}): give the same ones, repeat the runs with --rerun, or use another --work-dir.'
        )


def report(args: argparse.Namespace) -> None:
    """What came out, beside what the paper prints."""
    from .report import write_report

    source = _open(args.results or args.work_dir)
    page, *others = write_report(source, args.out, args.suite, args.tolerance, args.figures, args.classes)
    print(f'{page} and {len(others)} more files in {page.parent} (Markdown, CSV, LaTeX, figures).')


def check(args: argparse.Namespace) -> None:
    """Are finished runs near enough to the paper?"""
    from .frames import cells

    views = _selected(args, args.experiment)
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


def collect(args: argparse.Namespace) -> None:
    """All results of a work directory in one small file, to publish or to take home."""
    source = Source(args.work_dir)
    results = [view.result for name in args.suite or SUITES for view in source.views(name) if view.result is not None]
    if not results:
        raise TPAError(f'No results in {args.work_dir}. Run experiments first, or pass another --work-dir.')
    write_results(args.out, results)
    print(f'{args.out}: {len(results)} results, {args.out.stat().st_size / 1e6:.2f} MB.')


def compare(args: argparse.Namespace) -> None:
    """Two machines, two commits, or ours and the paper, number by number."""
    from .frames import compared
    from .report.build import origins
    from .report.tables import Table

    sources = {'A': args.a, 'B': args.b}
    views = {key: _all_views(name) for key, name in sources.items()}
    both = compared(*((views[key], 'paper' if name == _PAPER else 'ours') for key, name in sources.items()))
    for key, name in sources.items():
        if both[key].isna().all():
            raise TPAError(f'No scores in {name}. Pass a file that collect wrote, a work directory, or paper.')
    shared = both.dropna(subset=['A', 'B'])
    far = shared[shared.Difference.abs() > args.tolerance]
    if len(far):
        print_table(list(far.columns), far.assign(Difference=far.Difference.map(signed)).values.tolist())
    for key, name in sources.items():
        print(f'{key}: {name}, {"as printed" if name == _PAPER else origins(views[key])}')
    print(
        f'{len(shared)} numbers are in both, {len(far)} of them differ by more than {args.tolerance:g} points; '
        f'{both.B.isna().sum()} are only in A, {both.A.isna().sum()} only in B.'
    )
    if args.out:
        with atomic_write(args.out, 'w') as file:
            file.write(Table('compare', '', both).to_csv())
    if len(far):
        sys.exit(1)


def _all_views(name: str) -> list[RunView]:
    """The runs of a source, or those that the paper prints."""
    source = _open(Path('.' if name == _PAPER else name))
    return [view for suite in ([_PAPER] if name == _PAPER else SUITES) for view in source.views(suite)]


def _selected(args: argparse.Namespace, experiments: Iterable[str]) -> list[RunView]:
    """Returns the runs of some experiments (or of ``all``) that pass the filters of the command line."""
    names = dict.fromkeys(name for given in experiments for name in (EXPERIMENTS if given == 'all' else [given]))
    # A command without an option looks at everything that there may be.
    source = _open(getattr(args, 'results', None) or args.work_dir)
    options = args.suite, args.host, args.backbone, args.dataset, getattr(args, 'with_comparisons', True)
    return [source.view(run) for name in names for run in plan(name, *options)]


def _open(path: Path) -> Source:
    """Returns a source, and says how many of its results no command can show."""
    source = Source(path)
    if source.unplanned:
        print(f'{path}: {source.unplanned} results are of runs that this version does not plan.', file=sys.stderr)
    return source
