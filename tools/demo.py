#!/usr/bin/env python
"""The demo: a small segmentor trained by day meets painted scenes at dusk, with TPA around it.

Paints the scenes, runs tools/test.py on them, and puts a few of its pictures together.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from mmengine.config import Config
from PIL import Image

from tpa_mmseg.demo import train_host, write_scenes
from tpa_mmseg.engine.launch import run_tool

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / 'configs/demo/fcn_scenes.py'
SCENES = Path('data/demo/dusk')
WORK_DIR = Path('work_dirs/demo')
SCENE_COUNT = 60
DUSK = 0.7
SHOWN = ('0003', '0012', '0027', '0041')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--train', action='store_true', help='train the small segmentor anew (a minute)')
    if parser.parse_args().train:
        cfg = Config.fromfile(CONFIG)
        train_host(cfg.segmentor, ROOT / 'tpa_mmseg/demo/host.safetensors')
    write_scenes(SCENES, SCENE_COUNT, first_seed=0, dusk=DUSK)
    pictures = WORK_DIR / 'pictures'
    command = [sys.executable, ROOT / 'tools/test.py', CONFIG, '--work-dir', WORK_DIR, '--show-dir', pictures]
    status = subprocess.run([str(part) for part in command]).returncode
    if status:
        sys.exit(status)
    stack(sorted(path for path in pictures.iterdir() if path.stem in SHOWN), WORK_DIR / 'demo.png')
    results = json.loads((WORK_DIR / 'results.json').read_text(encoding='utf-8'))
    host, tpa = results['host']['mIoU'], results['tpa']['mIoU']
    print(
        f'\nmIoU of the host alone {host:.2f}, with TPA {tpa:.2f} ({tpa - host:+.2f}), on {SCENE_COUNT} painted scenes.'
    )
    print(f'Look at {WORK_DIR / "demo.png"} (all scenes: {pictures}); the numbers are in {WORK_DIR / "results.json"}.')
    print(f'Next: python tools/test.py {CONFIG.relative_to(ROOT)} --cfg-options model.fusion.alpha=0.8')


def stack(paths: list[Path], out: Path) -> None:
    """Puts pictures below each other into one."""
    pictures = [Image.open(path).convert('RGB') for path in paths]
    canvas = Image.new('RGB', (max(p.width for p in pictures), sum(p.height for p in pictures)), 'white')
    top = 0
    for picture in pictures:
        canvas.paste(picture, (0, top))
        top += picture.height
    canvas.save(out)


if __name__ == '__main__':
    run_tool(main)
