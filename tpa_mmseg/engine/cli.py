"""What the command-line tools share: reading a config, starting a Runner, ending with a sentence."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Callable

import torch.distributed
from mmengine.config import DictAction

from ..errors import TPAError, user_message
from .distributed import LAUNCHERS


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments every tool that runs a config takes."""
    parser.add_argument('config', help='config file')
    parser.add_argument('--work-dir', help='folder for logs, results and the bank (default: work_dirs/<config name>)')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        metavar='KEY=VALUE',
        help='settings that replace those of the config, such as model.fusion.alpha=0.3',
    )
    parser.add_argument('--launcher', choices=LAUNCHERS, default='none', help='how several ranks are started')
    # torch.distributed.launch passes it; torchrun sets LOCAL_RANK instead.
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS)


def run_tool(main: Callable[[], None]) -> None:
    """Runs a tool; what a user can mend ends in one sentence and an exit code, not in a traceback."""
    try:
        main()
    except TPAError as error:
        sys.exit(_say(user_message(error)))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        sys.exit(_say(f'No space left on the disk ({error.filename or "while writing"}): free some and run again.'))
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def _say(text: str) -> int:
    # A progress bar may have left the cursor in the middle of its line.
    print('\n' * sys.stderr.isatty() + f'error: {text}', file=sys.stderr, flush=True)
    return 2
