"""Shared by the tools: their common arguments, and how they start and end.

A tool parses its arguments before anything heavy is imported: ``--help`` and typing errors are answered at once.
"""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Callable

LAUNCHERS = ('none', 'pytorch', 'slurm', 'mpi')


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of every tool that runs a config."""
    parser.add_argument('config', help='config file')
    parser.add_argument('--work-dir', help='folder for logs, results and the bank (default: work_dirs/<config name>)')
    add_cfg_options(parser, 'settings that replace those of the config, e.g. model.fusion.alpha=0.3')
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

        if tpa_mmseg.import_error is not None:
            sys.exit(_fail(f'tpa_mmseg cannot be used here ({tpa_mmseg.import_error}). Run: tpa doctor'))
        _run(work, args)
    except KeyboardInterrupt:
        print('\nInterrupted.', file=sys.stderr)
        sys.exit(130)


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
