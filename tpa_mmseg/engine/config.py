"""Configs: reading one, with or without TPA in it, starting a Runner, and messages for wrong options."""

from __future__ import annotations

import argparse
import inspect
import keyword
import os
import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from mmengine.config import Config, DictAction
from mmengine.registry import build_from_cfg
from mmengine.runner import Runner

from ..datasets import add_read_checks
from ..errors import TPAError, user_message
from ..options import unknown_option
from .distributed import init_distributed


def load_config(
    path: str | os.PathLike,
    work_dir: str | os.PathLike | None = None,
    options: Mapping | None = None,
    launcher: str = 'none',
) -> Config:
    """Reads a config that can be tested.

    Args:
        path: Its file.
        work_dir: Folder for logs, results and the bank; by default the config's own, or one below ``work_dirs``.
        options: Dotted key -> value, replacing the config's; see :func:`parse_options`.
        launcher: How the ranks of a job are started, one of :data:`~tpa_mmseg.engine.distributed.LAUNCHERS`.
    """
    path = Path(path)
    if not path.is_file():
        raise TPAError(f'There is no config file {path}.')
    try:
        cfg = Config.fromfile(path)
        if options:
            cfg.merge_from_dict(dict(options))
    except (KeyError, TypeError, NameError, SyntaxError, FileNotFoundError) as error:
        raise TPAError(f'The config {path} cannot be read ({user_message(error)}).') from error
    missing = [key for key in ('model', 'test_dataloader', 'test_evaluator', 'test_cfg') if not cfg.get(key)]
    if missing:
        raise TPAError(f'The config {path} has no {missing[0]}: it cannot be tested.')
    cfg.work_dir = str(work_dir or cfg.get('work_dir') or Path('work_dirs') / path.stem)
    cfg.launcher = launcher
    if launcher != 'none':
        cfg.model_wrapper_cfg = dict(type='TestOnlyWrapper')
    if torch.cuda.is_available():
        cfg.test_dataloader.setdefault('pin_memory', True)
    dataset = cfg.test_dataloader.dataset
    if (place := missing_data(dataset)) is not None:
        raise TPAError(f'There is no {place}, which {path} asks for: prepare the data as data/README.md says.')
    if 'pipeline' in dataset:
        add_read_checks(dataset.pipeline)
    return cfg


def parse_options(texts: Sequence[str]) -> dict:
    """Reads ``KEY=VALUE`` texts as MMEngine's tools do: numbers, booleans, lists and tuples have their own types."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--cfg-options', nargs='+', action=DictAction, default={})
    try:
        options = parser.parse_args(['--cfg-options', *texts] if texts else []).cfg_options
    except (AssertionError, ValueError) as error:
        raise TPAError(f'--cfg-options {" ".join(texts)} cannot be read ({error}).') from error
    for key in options:
        for part in filter(keyword.iskeyword, key.split('.')):
            raise TPAError(f'{key} is not an option: {part!r} is a Python keyword. Did you mean {part + "_"!r}?')
    return options


@contextmanager
def config_errors() -> Iterator[None]:
    """Turns the TypeError for an option that a registered class does not have into a message with the nearest one."""
    try:
        yield
    except TypeError as error:
        explained = _explain(error)
        if explained is None:
            raise
        raise explained from error


def _explain(error: TypeError) -> TPAError | None:
    """The message for a wrong option of a config; None for every other TypeError."""
    wrong = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    builds = [f.f_locals for f, _ in traceback.walk_tb(error.__traceback__) if f.f_code is build_from_cfg.__code__]
    # Only what stands in the config: a class that calls another one wrongly is a defect and not a user's mistake.
    if not wrong or not builds or wrong[1] not in builds[-1]['args']:
        return None
    built = builds[-1]['obj_cls']
    makers = [vars(cls).get('__init__') for cls in built.__mro__] if isinstance(built, type) else [built]
    known = {name: None for maker in filter(inspect.isfunction, makers) for name in inspect.signature(maker).parameters}
    known = [name for name in known if name not in ('self', 'args', 'kwargs')]
    return unknown_option(built.__name__, wrong[1], known)


def missing_data(dataset: Mapping) -> Path | None:
    """Returns the folder, the list of images or the images of a dataset that are not there; None if all are."""
    root = Path(dataset.get('data_root') or '')
    parts = (dataset.get('ann_file'), (dataset.get('data_prefix') or {}).get('img_path'))
    places = (root, *(root / part for part in parts if part))
    return next((place for place in places if not place.exists()), None)


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
