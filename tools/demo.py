#!/usr/bin/env python
"""The demo: five hosts with TPA on the miniature world, each tested by tools/test.py; a table and a picture at the end.

The world is painted and its networks are tiny, but all of it is real: a CLIP that has read captions, an encoder that
has never seen a label, and a SAM. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import torch
from mmengine.config import Config
from PIL import Image
from tpa_tools.miniature_training.measure import PAPER_HOSTS, config_of
from tpa_tools.miniature_training.scene_pictures import comparison_grid
from tqdm import tqdm

from tpa_mmseg.engine.cli import run_tool
from tpa_mmseg.errors import TPAError
from tpa_mmseg.evaluation import render
from tpa_mmseg.evaluation.summary import signed
from tpa_mmseg.io import atomic_write
from tpa_mmseg.miniature.files import scene

ROOT = Path(__file__).resolve().parent.parent
WORK_DIR = Path('work_dirs/demo')
# The scenes of the picture are the first of this size, one for each host.
SHOWN_SIZE = (128, 160)


def main() -> None:
    args = parse_args()
    WORK_DIR.mkdir(parents=True, exist_ok=True)
    print(f'Testing {", ".join(PAPER_HOSTS[host] for host in args.hosts)} on {args.size} scenes: a minute or two.')
    started = time.monotonic()
    results = run_hosts(args)
    with atomic_write(WORK_DIR / 'results.json', 'w') as file:
        json.dump(results, file, indent=2)
        file.write('\n')
    draw(args.hosts, WORK_DIR / 'demo.png')
    print(f'\n{table(results)}\n')
    print(f'{args.size} painted scenes, pool of {args.pool} without labels, {time.monotonic() - started:.0f} seconds.')
    print(f'Look at {WORK_DIR / "demo.png"}; the numbers are in {WORK_DIR / "results.json"}.')
    config = config_of(args.hosts[0]).relative_to(ROOT)
    print('\nWhat to try next:')
    print(f'  python tools/test.py {config} --show-dir work_dirs/pictures    # every scene')
    print(f'  python tools/test.py {config} --cfg-options model.fusion.alpha=0.8')
    print('  docs/miniature.md says what this world is, configs/README.md has the real benchmarks')


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--hosts', nargs='+', choices=PAPER_HOSTS, default=list(PAPER_HOSTS), help='(default: all)')
    parser.add_argument('--size', type=int, default=300, help='number of scenes (default: 300)')
    parser.add_argument('--pool', type=int, default=100, help='scenes in the pool (default: 100)')
    parser.add_argument('--jobs', type=int, default=2, help='hosts at a time, a core each (default: 2)')
    return parser.parse_args()


def run_hosts(args: argparse.Namespace) -> list[dict]:
    """Tests every host in a process of its own. Returns what each scored, in their order."""
    found = {}
    with ThreadPoolExecutor(args.jobs) as threads, tqdm(total=len(args.hosts), unit='host') as bar:
        jobs = {threads.submit(run_host, host, args.size, args.pool): host for host in args.hosts}
        for job in as_completed(jobs):
            host, found[jobs[job]] = jobs[job], job.result()
            base, tpa = (found[host][row]['mIoU'] for row in ('base', 'tpa'))
            bar.write(f'{PAPER_HOSTS[host]}: {base:.2f} -> {tpa:.2f} mIoU')
            bar.update()
    return [found[host] for host in args.hosts]


def run_host(host: str, size: int, pool: int) -> dict:
    """Runs tools/test.py on a host. Returns its entry of results.json."""
    work_dir = WORK_DIR / host
    work_dir.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, ROOT / 'tools/test.py', config_of(host), '--work-dir', work_dir]
    command += ['--cfg-options', f'test_dataloader.dataset.size={size}', f'custom_hooks.0.pool.size={pool}']
    log = work_dir / 'output.txt'
    with log.open('w', encoding='utf-8') as output:
        # One thread each: the networks are so small that more threads only wait for each other.
        environment = {**os.environ, 'OMP_NUM_THREADS': '1'}
        status = subprocess.run([str(part) for part in command], stdout=output, stderr=output, env=environment)
    if status.returncode:
        last = log.read_text(encoding='utf-8').rstrip().rpartition('\n')[2]
        raise TPAError(f'The test of {PAPER_HOSTS[host]} failed ({last}): {log} has all it said.')
    report = json.loads((work_dir / 'results.json').read_text(encoding='utf-8'))
    return {
        'host': PAPER_HOSTS[host],
        'base': report['host'],
        'tpa': report['tpa'],
        'gain': report['delta'],
        'classes_covered': report['bank']['classes_covered'],
        'num_classes': report['bank']['num_classes'],
        'seconds_per_image': report['seconds_per_image'],
    }


def table(results: list[dict]) -> str:
    rows = [
        [
            result['host'],
            result['base']['mIoU'],
            result['tpa']['mIoU'],
            signed(result['gain']['mIoU']),
            f'{result["classes_covered"]} of {result["num_classes"]}',
            f'{result["seconds_per_image"]:.3f}',
        ]
        for result in results
    ]
    columns = ['Host', 'Base mIoU', 'TPA mIoU', 'Gain', 'Classes covered', 'Seconds per image']
    return render(columns, rows, align='lrrrrr')


def draw(hosts: list[str], out: Path) -> None:
    """One row for each host: a scene, its truth, what the host and TPA make of it, and what TPA changed."""
    # Not before tpa_mmseg, which lets it run on a current torch.
    from mmseg.apis import inference_model, init_model

    torch.set_num_threads(1)
    indices = (index for index in range(1000) if scene('test', index).labels.shape == SHOWN_SIZE)
    rows = []
    for host, index in zip(hosts, indices, strict=False):
        cfg = Config.fromfile(config_of(host))
        cfg.model.bank = str(WORK_DIR / host / 'bank.safetensors')
        result = inference_model(init_model(cfg, device='cpu'), f'miniature://images/test/{index:05d}.png')
        labels = (result.host_sem_seg.data[0].numpy(), result.pred_sem_seg.data[0].numpy())
        rows.append((PAPER_HOSTS[host], scene('test', index), *labels))
    picture: Image.Image = comparison_grid(rows)
    with atomic_write(out) as file:
        picture.save(file, format='PNG')


if __name__ == '__main__':
    run_tool(main)
