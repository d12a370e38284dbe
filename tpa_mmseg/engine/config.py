"""Configs: reading one, with or without TPA in it, and starting a Runner."""

from __future__ import annotations

import argparse
import keyword
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from mmengine.config import Config, ConfigDict, DictAction
from mmengine.runner import Runner
from mmseg.registry import METRICS, MODELS

from ..datasets import add_read_checks
from ..errors import TPAError, user_message
from ..hosts import Host
from ..io import claim_folder
from ..options import options_of_class
from .config_check import config_problems, raise_problems, unread_key
from .data_check import data_problem
from .distributed import init_distributed
from .short_log import ShortLogRunner


def load_config(
    path: str | os.PathLike,
    work_dir: str | os.PathLike | None = None,
    options: Mapping | None = None,
    launcher: str = 'none',
) -> Config:
    """Reads a config that can be tested, whose data is there.

    Args:
        path: Its file.
        work_dir: Folder for logs, results and the bank; by default the config's own, or one below ``work_dirs``.
        options: Dotted key -> value, replacing the config's; see :func:`parse_options`.
        launcher: How the ranks of a job are started, one of :data:`~tpa_mmseg.engine.distributed.LAUNCHERS`.
    """
    cfg = checked_config(path, work_dir, options, launcher)
    require_data(cfg)
    return cfg


def checked_config(
    path: str | os.PathLike,
    work_dir: str | os.PathLike | None = None,
    options: Mapping | None = None,
    launcher: str = 'none',
) -> Config:
    """As :func:`load_config`, but the data need not be there."""
    path = Path(path)
    if not path.is_file():
        raise TPAError(f'Config not found: {path}. Check the path.')
    try:
        cfg = Config.fromfile(path)
    except (KeyError, TypeError, NameError, SyntaxError, FileNotFoundError, ImportError) as error:
        raise TPAError(f'The config {path} cannot be read ({user_message(error)}).') from error
    found = list(_merge(cfg, options or {}))
    for key in ('model', 'test_dataloader', 'test_evaluator', 'test_cfg'):
        if not cfg.get(key):
            found.append(f'{key} is missing: a config without it cannot be tested.')
    cfg.setdefault('default_scope', 'mmseg')
    cfg.work_dir = work_dir or cfg.get('work_dir') or str(Path('work_dirs') / path.stem)
    cfg.work_dir = str(cfg.work_dir) if isinstance(cfg.work_dir, os.PathLike) else cfg.work_dir
    cfg.launcher = launcher
    if launcher != 'none':
        cfg.model_wrapper_cfg = dict(type='TestOnlyWrapper')
    raise_problems([*found, *config_problems(cfg.to_dict())], f'The config {path}')
    if torch.cuda.is_available():
        cfg.test_dataloader.setdefault('pin_memory', True)
    if not cfg.test_dataloader.get('num_workers'):
        # MMSegmentation's configs set these for workers of their own; without any, PyTorch refuses them.
        for key in ('persistent_workers', 'prefetch_factor', 'timeout', 'multiprocessing_context'):
            cfg.test_dataloader.pop(key, None)
    return cfg


def require_data(cfg: Config) -> None:
    """Raises TPAError if the data of a test is not there. Its images are read by steps that name what they cannot."""
    dataset = cfg.test_dataloader.dataset
    if (problem := data_problem(dataset)) is not None:
        raise TPAError(problem)
    if 'pipeline' in dataset:
        add_read_checks(dataset.pipeline)


def _merge(cfg: Config, options: Mapping) -> Iterator[str]:
    """Puts options into a config. Yields what is wrong with those that do not fit."""
    for key, value in options.items():
        if (unread := unread_key(key, cfg)) is not None:
            yield unread
            continue
        try:
            cfg.merge_from_dict({key: value})
        except (KeyError, TypeError, IndexError, ValueError) as error:
            yield f'{key}={value} does not fit into the config ({user_message(error)}).'


def parse_options(texts: Sequence[str]) -> dict:
    """Reads ``KEY=VALUE`` texts as MMEngine's tools do: numbers, booleans, lists and tuples have their own types."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--cfg-options', nargs='+', action=DictAction, default={})
    try:
        options = parser.parse_args(['--cfg-options', *texts] if texts else []).cfg_options
    except (AssertionError, ValueError) as error:
        raise TPAError(f'--cfg-options {" ".join(texts)} cannot be read ({error}).') from error
    return {'.'.join(map(_as_argument, key.split('.'))): value for key, value in options.items()}


def _as_argument(name: str) -> str:
    """Returns the name of an argument: Python's keywords, such as lambda, need an underscore."""
    return f'{name}_' if keyword.iskeyword(name) else name


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


def use_checkpoint(cfg: Config, checkpoint: str) -> None:
    """Loads a checkpoint of MMSegmentation into the segmentor that is the host, or the whole model."""
    inside = cfg.model.type == 'TPASegmentor'
    host = cfg.model.host if inside else cfg.model
    kind = MODELS.get(host.type) if isinstance(host.type, str) else host.type
    if kind is not None and not issubclass(kind, Host) and inside:
        host = cfg.model.host = ConfigDict(type='SegmentorHost', segmentor=host)
    if host.type == 'SegmentorHost':
        host.checkpoint = checkpoint
    elif kind is not None and issubclass(kind, Host):
        raise TPAError(
            f'The host {host.type} takes no checkpoint ({checkpoint}): its weights are those of its own config, e.g. '
            'model.host.clip.pretrained. A checkpoint is for a SegmentorHost.'
        )
    else:
        cfg.load_from = checkpoint


def write_labels(cfg: Config, folder: str) -> None:
    """Lets the metrics that can write predicted labels do so."""
    metrics = cfg.test_evaluator if isinstance(cfg.test_evaluator, list) else [cfg.test_evaluator]
    writers = [each for each in metrics if 'output_dir' in options_of_class(METRICS.get(each.type)).known]
    if not writers:
        raise TPAError('--out needs a metric that writes labels: set test_evaluator.type=HostTPAMetric.')
    for each in writers:
        each.output_dir = folder


def start_runner(cfg: Config) -> Runner:
    """Joins the other ranks and builds the Runner."""
    init_distributed(cfg.launcher)
    claim_folder(cfg.work_dir)
    return ShortLogRunner.from_cfg(cfg)
