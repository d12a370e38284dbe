"""What the command-line tools share: reading a config, starting a Runner, ending with a sentence."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Callable
from pathlib import Path

import torch.distributed
from mmengine.config import Config, DictAction
from mmengine.runner import Runner

from ..datasets import harden_pipeline
from ..errors import TPAError, sentence
from .distributed import LAUNCHERS, init_distributed


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


def load_config(args: argparse.Namespace) -> Config:
    """Reads the config and applies the common arguments."""
    path = Path(args.config)
    if not path.is_file():
        raise TPAError(f'There is no config file {path}.')
    try:
        cfg = Config.fromfile(path)
        if args.cfg_options:
            cfg.merge_from_dict(args.cfg_options)
    except (KeyError, TypeError, NameError, SyntaxError, FileNotFoundError) as error:
        raise TPAError(f'The config {path} cannot be read ({sentence(error)}).') from error
    missing = [key for key in ('model', 'test_dataloader', 'test_evaluator', 'test_cfg') if not cfg.get(key)]
    if missing:
        raise TPAError(f'The config {path} has no {missing[0]}: it cannot be tested.')
    cfg.work_dir = args.work_dir or cfg.get('work_dir') or str(Path('work_dirs') / path.stem)
    cfg.launcher = args.launcher
    if args.launcher != 'none':
        cfg.model_wrapper_cfg = dict(type='TestOnlyWrapper')
    dataset = cfg.test_dataloader.dataset
    _check_data(dataset, path)
    if 'pipeline' in dataset:
        harden_pipeline(dataset.pipeline)
    return cfg


def _check_data(dataset: dict, config: Path) -> None:
    """Raises TPAError where a data set's folder, list of images or images are not there."""
    root = Path(dataset.get('data_root') or '')
    parts = (dataset.get('ann_file'), (dataset.get('data_prefix') or {}).get('img_path'))
    for place in (root, *(root / part for part in parts if part)):
        if not place.exists():
            raise TPAError(f'There is no {place}, which {config} asks for: prepare the data as data/README.md says.')


def use_tpa(cfg: Config, bank: str | None) -> None:
    """Makes sure that the bank is there before the test: the given file, or the hook that builds one."""
    if cfg.model.type != 'TPASegmentor':
        if bank is not None:
            raise TPAError(f'--bank needs a TPASegmentor, but the model of this config is {cfg.model.type}.')
        return
    if bank is not None:
        cfg.model.bank = bank
    if not has_hook(cfg, 'PrototypeBankHook'):
        add_hook(cfg, type='PrototypeBankHook')


def use_host_alone(cfg: Config) -> None:
    """Takes TPA away: the config's host becomes the model."""
    if cfg.model.type != 'TPASegmentor':
        return
    model = cfg.model
    cfg.model = model.host
    if model.get('data_preprocessor') and not cfg.model.get('data_preprocessor'):
        cfg.model.data_preprocessor = model.data_preprocessor
    cfg.custom_hooks = [hook for hook in cfg.get('custom_hooks', []) if hook['type'] != 'PrototypeBankHook']


def has_hook(cfg: Config, name: str) -> bool:
    return any(hook['type'] == name for hook in cfg.get('custom_hooks', []))


def add_hook(cfg: Config, **hook) -> None:
    cfg.custom_hooks = [*cfg.get('custom_hooks', []), hook]


def start_runner(cfg: Config) -> Runner:
    """Joins the other ranks and builds the Runner."""
    init_distributed(cfg.launcher)
    return Runner.from_cfg(cfg)


def run_tool(main: Callable[[], None]) -> None:
    """Runs a tool; what a user can mend ends in one sentence and an exit code, not in a traceback."""
    try:
        main()
    except TPAError as error:
        sys.exit(_say(sentence(error)))
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
