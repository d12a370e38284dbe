"""Configs: reading one, with or without TPA in it, and starting a Runner."""

from __future__ import annotations

import argparse
from pathlib import Path

from mmengine.config import Config
from mmengine.runner import Runner

from ..datasets import add_read_checks
from ..errors import TPAError, user_message
from .distributed import init_distributed


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
        raise TPAError(f'The config {path} cannot be read ({user_message(error)}).') from error
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
        add_read_checks(dataset.pipeline)
    return cfg


def _check_data(dataset: dict, config: Path) -> None:
    """Raises TPAError where a dataset's folder, list of images or images are not there."""
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
