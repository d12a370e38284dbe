"""Shared by the tools: their common arguments, and how they start and end.

A tool parses its arguments before anything heavy is imported: ``--help`` and typing errors are answered at once.
"""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Callable

LAUNCHERS = ('none', 'pytorch', 'slurm', 'mpi')


def add_config_arguments(parser: argparse.ArgumentParser, launcher: bool = True) -> None:
    """Adds the arguments of every tool that runs a config. Args: parser; launcher: Whether with ``--launcher``."""
    parser.add_argument('config', help='config file')
    parser.add_argument('--work-dir', help='folder for logs, results and the bank (default: work_dirs/<config name>)')
    add_cfg_options(parser, 'settings that replace those of the config, e.g. model.fusion.alpha=0.3')
    if launcher:
        parser.add_argument('--launcher', choices=LAUNCHERS, default='none', help='how the ranks of a job are started')
    # torch.distributed.launch passes it; torchrun sets LOCAL_RANK instead.
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS)


def add_check(parser: argparse.ArgumentParser) -> None:
    """Adds ``--check``."""
    parser.add_argument(
        '--check', action='store_true', help='only check: config, weights, data, bank, GPU, disk space; runs nothing'
    )


def add_cfg_options(parser: argparse.ArgumentParser, text: str) -> None:
    """Adds ``--cfg-options``. Its texts are read by ``tpa_mmseg.engine.config.parse_options``."""
    parser.add_argument('--cfg-options', nargs='+', action=KeyValues, default=[], metavar='KEY=VALUE', help=text)


def add_launch_options(
    parser: argparse.ArgumentParser, what: str, shared: bool = True, launcher: bool = True, check: bool = False
) -> None:
    """Adds what ``tpa_mmseg.launch.LaunchOptions.of`` reads.

    Args:
        parser: The parser.
        what: The name of a task, e.g. ``'run'``.
        shared: Whether several GPUs can share a task.
        launcher: Whether with ``--launcher``.
        check: Whether ``--check`` is another name of ``--dry-run``.
    """
    add = parser.add_argument
    if launcher:
        text = 'this machine (default), Slurm or Ray'
        add('--launcher', choices=('local', 'slurm', 'ray'), default='local', help=text)
    add('--gpus', type=int, metavar='N', help='use at most N GPUs at a time (default: all)')
    add('--processes', type=int, default=1, metavar='N', help=f'without GPUs: at most N {what}s at a time (default: 1)')
    parser.set_defaults(gpus_per_task=1)
    if shared:
        text = f'GPUs that share one {what} (default: 1); without GPUs, processes'
        add(f'--gpus-per-{what}', dest='gpus_per_task', type=int, metavar='N', help=text)
    names = ('--dry-run', '--check') if check else ('--dry-run',)
    text = 'run nothing: check every config, and show what would be run and what is missing for it'
    add(*names, dest='dry_run', action='store_true', help=text)
    add('--rerun', action='store_true', help='run what is done again')
    add('--limit', type=int, default=0, metavar='N', help=f'at most N {what}s')
    add('--ray-address', metavar='ADDRESS', help='a Ray cluster, e.g. auto (default: one on this machine)')
    group = parser.add_argument_group('Slurm')
    limit, memory = f'limit of a {what} (default: 720)', f'memory of a {what}, e.g. 32GB'
    names = {name: ('NAME', None) for name in ('partition', 'account', 'qos', 'constraint')}
    for name, (value, text) in {**names, 'time': ('MINUTES', limit), 'mem': ('SIZE', memory)}.items():
        form = {'dest': 'slurm', 'action': 'append', 'type': f'{name}={{}}'.format, 'default': []}
        group.add_argument(f'--{name}', metavar=value, help=text, **form)
    group.add_argument(
        '--slurm', nargs='+', action=KeyValues, default=[], metavar='KEY=VALUE', help='more, e.g. gres=gpu:a100:1'
    )
    group.add_argument('--no-wait', dest='wait', action='store_false', help='submit and return')


def add_shard_options(group: argparse._ArgumentGroup) -> None:
    """Adds the options of bulk work."""
    group.add_argument('--shards', type=int, metavar='N', help='divide the images into N tasks, for any number of them')
    group.add_argument(
        '--batch-size', type=int, metavar='N', help='images of one call of the models (default: 8 on a GPU, 1 on a CPU)'
    )
    group.add_argument('--image-column', metavar='NAME', help='column of Parquet files that has the images')


class KeyValues(argparse.Action):
    """Refuses a text without '=', in one line instead of the usage."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        for text in values:
            if '=' not in text:
                parser.exit(2, f'error: {option_string} expects KEY=VALUE, got {text!r}.\n')
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), *values])


def run_tool(work: Callable[[argparse.Namespace], None], args: argparse.Namespace) -> None:
    """Does the work of a tool. An error that the user can fix is printed in one line, without a traceback."""
    try:
        import tpa_mmseg
        from tpa_mmseg.console import printable_logs

        if tpa_mmseg.import_error is not None:
            sys.exit(_fail(f'tpa_mmseg cannot be used here ({tpa_mmseg.import_error}). Run: tpa doctor --imports'))
        with printable_logs():
            _run(work, args)
    except (KeyboardInterrupt, Exception) as error:
        if not _is_interrupt(error):
            raise
        print('\nInterrupted.', file=sys.stderr)
        sys.exit(130)


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: MMEngine takes it for bad syntax while it formats a config."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _run(work: Callable[[argparse.Namespace], None], args: argparse.Namespace) -> None:
    import torch.distributed

    from tpa_mmseg.errors import TPAError, user_message

    try:
        work(args)
    except TPAError as error:
        sys.exit(_fail(user_message(error)))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        place = error.filename or 'while writing'
        sys.exit(_fail(f'No space left on the disk ({place}): free some space and run again.'))
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def _fail(text: str) -> int:
    # A progress bar may have left the cursor in the middle of its line.
    print('\n' * sys.stderr.isatty() + f'error: {text}', file=sys.stderr, flush=True)
    return 2
