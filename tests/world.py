"""A few painted scenes and the demo's segmentor: what tests run the tools on."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from mmengine.config import Config

from tpa_mmseg.demo import write_scenes

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / 'configs/demo/fcn_scenes.py'
SIZE = (40, 56)


def make_world(folder: Path, count: int = 7, pool: int = 5) -> Path:
    """Writes scenes and a config for them. Returns the config's path."""
    write_scenes(folder / 'scenes', count, first_seed=0, dusk=0.6, size=SIZE)
    return write_config(folder, pool)


def write_config(folder: Path, pool: int = 5, name: str = 'config.py', **changes) -> Path:
    """The demo's config on the scenes of ``folder``, with other settings where ``changes`` says so."""
    cfg = Config.fromfile(DEMO)
    cfg.merge_from_dict(
        {
            'test_dataloader.dataset.data_root': str(folder / 'scenes'),
            'custom_hooks.0.pool.size': pool,
            **{key.replace('__', '.'): value for key, value in changes.items()},
        }
    )
    path = folder / name
    cfg.dump(path)
    return path


def run_in_process(tool: str, *args) -> None:
    """Runs a tool's main as the command line would, errors included (SystemExit), without a new interpreter."""
    spec = importlib.util.spec_from_file_location(f'tool_{tool}', ROOT / 'tools' / f'{tool}.py')
    module = importlib.util.module_from_spec(spec)
    before, sys.argv = sys.argv, [str(ROOT / 'tools' / f'{tool}.py'), *map(str, args)]
    try:
        spec.loader.exec_module(module)
        module.run_tool(module.main)
    finally:
        sys.argv = before


def run_ranks(ranks: int, tool: str, *args, **kwargs) -> subprocess.CompletedProcess:
    """Runs a tool under torchrun."""
    command = [sys.executable, '-m', 'torch.distributed.run', '--standalone', f'--nproc_per_node={ranks}']
    command += [str(ROOT / 'tools' / f'{tool}.py'), *map(str, args), '--launcher', 'pytorch']
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=600, **kwargs)


def environment() -> dict:
    """For children: the package from this tree, one thread each, no network."""
    return {**os.environ, 'PYTHONPATH': str(ROOT), 'OMP_NUM_THREADS': '1', 'CUDA_VISIBLE_DEVICES': '-1'}


def results(work_dir: Path) -> dict:
    return json.loads((Path(work_dir) / 'results.json').read_text(encoding='utf-8'))
