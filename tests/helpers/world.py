"""A few scenes of the miniature world as files, and a small segmentor that was trained there: what the tools run on."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

from mmengine.config import Config, ConfigDict

from tpa_mmseg.miniature.files import encode, scene
from tpa_mmseg.miniature.world import CLASSES, PALETTE

ROOT = Path(__file__).resolve().parents[2]
#: A segmentor of MMSegmentation as host.
FCN = ROOT / 'configs/miniature/fcn_mini.py'
#: Height and width of the scenes' upper left parts.
SIZE = (64, 80)


def make_world(folder: Path, count: int = 7, pool: int = 5) -> Path:
    """Writes scenes and a config for them. Returns the config's path."""
    height, width = SIZE
    for kind, field in (('images', 'image'), ('labels', 'labels')):
        (folder / 'scenes' / kind).mkdir(parents=True, exist_ok=True)
        for index in range(count):
            pixels = getattr(scene('val', index), field)[:height, :width]
            (folder / 'scenes' / kind / f'{index:04d}.png').write_bytes(encode(pixels))
    return write_config(folder, pool)


def write_config(folder: Path, pool: int = 5, name: str = 'config.py', **changes) -> Path:
    """The segmentor's config on the scenes of ``folder``, with other settings where ``changes`` says so."""
    cfg = Config.fromfile(FCN)
    # A dataset like any other: a folder, and the names of its classes in the config.
    cfg.test_dataloader.dataset = ConfigDict(
        type='BaseSegDataset',
        data_root=str(folder / 'scenes'),
        data_prefix=dict(img_path='images', seg_map_path='labels'),
        img_suffix='.png',
        metainfo=dict(classes=CLASSES, palette=[list(color) for color in PALETTE]),
        pipeline=cfg.test_pipeline,
    )
    cfg.merge_from_dict(
        {'custom_hooks.0.pool.size': pool, **{key.replace('__', '.'): value for key, value in changes.items()}}
    )
    path = folder / name
    cfg.dump(path)
    return path


def run_in_process(tool: str, *args) -> None:
    """Runs a tool's main as the command line would, errors included (SystemExit), without a new interpreter."""
    importlib.import_module(f'tpa_tools.{tool}').main([str(arg) for arg in args])


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
