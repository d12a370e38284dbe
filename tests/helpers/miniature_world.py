"""The miniature world for tests: its configs, shortened, and what a tool makes of them."""

from __future__ import annotations

from pathlib import Path

from mmengine.config import Config

from tests.helpers.world import ROOT, results, run_in_process

CONFIGS = ROOT / 'configs/miniature'


def config_path(name: str) -> Path:
    """The config of a name such as ``sclip_mini-b8``."""
    return CONFIGS / f'{name}.py'


def load(name: str, size: int = 4, pool: int = 3, split: str = 'val', **changes) -> Config:
    """A config on a few scenes.

    Args:
        name: As for :func:`config_path`.
        size: Number of scenes.
        pool: Number of scenes in the pool.
        split: Of which split; test is for the last look.
        **changes: Other settings, with two underscores for a dot: ``model__fusion__alpha=0.3``.
    """
    cfg = Config.fromfile(config_path(name))
    cfg.merge_from_dict(
        {
            'test_dataloader.dataset.size': size,
            'test_dataloader.dataset.split': split,
            'custom_hooks.0.pool.size': pool,
            **{key.replace('__', '.'): value for key, value in changes.items()},
        }
    )
    return cfg


def run(name: str, folder: Path, *args, **options) -> dict:
    """Runs tools/test.py on a few scenes and returns its results.json.

    Args:
        name: As for :func:`config_path`.
        folder: For the config, the bank and the results.
        *args: More arguments of the tool.
        **options: As for :func:`load`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f'{name}.py'
    load(name, **options).dump(path)
    run_in_process('test', path, '--work-dir', folder / 'work', *args)
    return results(folder / 'work')
