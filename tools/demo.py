#!/usr/bin/env python
"""Tests hosts with and without TPA on synthetic scenes, each by ``tpa test``; prints a table and draws a figure.

The scenes are painted and the models are tiny, but everything is real: a CLIP trained on captions, an encoder that
never saw a label, and a SAM. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tpa_tools.command import run_tool

#: What --quick leaves of the demo.
QUICK = {'hosts': ['sclip', 'naclip'], 'size': 12, 'pool': 6}
WORK_DIR = Path('work_dirs/demo')
# The scenes of the picture are the first of this size, one for each host.
SHOWN_SIZE = (128, 160)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--hosts', nargs='+', metavar='NAME', help='(default: all that the paper puts TPA around)')
    parser.add_argument('--size', type=int, default=300, help='number of scenes (default: 300)')
    parser.add_argument('--pool', type=int, default=100, help='scenes in the pool (default: 100)')
    parser.add_argument('--jobs', type=int, default=2, help='hosts at a time, a core each (default: 2)')
    parser.add_argument('--quick', action='store_true', help='two hosts on a few scenes: a smoke test')
    args = parser.parse_args(argv)
    if args.quick:
        vars(args).update(QUICK)
    run_tool(run, args)


def run(args: argparse.Namespace) -> None:
    from tpa_mmseg.io import write_json
    from tpa_mmseg.options import one_of

    titles = paper_hosts()
    args.hosts = [one_of('--hosts', host, tuple(titles)) for host in args.hosts or titles]
    WORK_DIR.mkdir(parents=True, exist_ok=True)
    print(f'Testing {", ".join(titles[host] for host in args.hosts)} on {args.size} scenes: a minute or two.')
    started = time.monotonic()
    results = run_hosts(args)
    write_json(WORK_DIR / 'results.json', results)
    draw(args.hosts, WORK_DIR / 'demo.png')
    print()
    show(results)
    print()
    print(f'{args.size} painted scenes, pool of {args.pool} without labels, {time.monotonic() - started:.0f} seconds.')
    print(f'Figure: {WORK_DIR / "demo.png"}. Scores: {WORK_DIR / "results.json"}.')
    config = config_of(args.hosts[0])
    config = config.relative_to(Path.cwd()) if config.is_relative_to(Path.cwd()) else config
    # An environment that is not active, like that of make, has the command in its own folder.
    beside = Path(sys.executable).parent
    tpa = 'tpa' if shutil.which('tpa') else Path(os.path.relpath(beside)) / 'tpa'
    print('\nNext steps:')
    print(f'  {tpa} test {config} --show-dir work_dirs/figures    # a figure of every scene')
    print(f'  {tpa} test {config} --cfg-options model.fusion.alpha=0.8 --work-dir work_dirs/alpha')
    print('  docs/miniature.md describes this benchmark, configs/README.md lists the real ones')


def paper_hosts() -> dict[str, str]:
    """Returns the hosts that the paper puts TPA around, with their titles."""
    from tpa_mmseg import catalog

    return {name: host.title for name, host in catalog.shipped().hosts.items() if host.paper}


def config_of(host: str) -> Path:
    """Returns the config of a host in the miniature world."""
    from tpa_mmseg import catalog

    shipped = catalog.shipped()
    defaults = shipped.suites['miniature'].own_images
    return shipped.config(catalog.Row(host, '', defaults['backbone']), defaults['plain'])


def run_hosts(args: argparse.Namespace) -> list[dict]:
    """Tests every host in a process of its own. Returns what each scored, in their order."""
    from tpa_mmseg.console import ProgressBar

    found = {}
    with ThreadPoolExecutor(args.jobs) as threads, ProgressBar('Testing', len(args.hosts), 'hosts') as bar:
        jobs = {threads.submit(run_host, host, args.size, args.pool): host for host in args.hosts}
        for job in as_completed(jobs):
            host, found[jobs[job]] = jobs[job], job.result()
            base, tpa = (found[host][row]['mIoU'] for row in ('base', 'tpa'))
            print(f'{paper_hosts()[host]}: {base:.2f} -> {tpa:.2f} mIoU', flush=True)
            bar.advance()
    return [found[host] for host in args.hosts]


def run_host(host: str, size: int, pool: int) -> dict:
    """Runs ``tpa test`` on a host. Returns its entry of results.json."""
    from tpa_mmseg.errors import TPAError

    work_dir = WORK_DIR / host
    work_dir.mkdir(parents=True, exist_ok=True)
    # Of an earlier demo, perhaps of another size, which a test would refuse to overwrite.
    (work_dir / 'results.json').unlink(missing_ok=True)
    command = [sys.executable, '-m', 'tpa_tools.test', config_of(host), '--work-dir', work_dir]
    command += ['--cfg-options', f'test_dataloader.dataset.size={size}', f'custom_hooks.0.pool.size={pool}']
    log = work_dir / 'output.txt'
    with log.open('w', encoding='utf-8') as output:
        # One thread each: the networks are so small that more threads only wait for each other.
        environment = {**os.environ, 'OMP_NUM_THREADS': '1'}
        status = subprocess.run([str(part) for part in command], stdout=output, stderr=output, env=environment)
    if status.returncode:
        last = log.read_text(encoding='utf-8').rstrip().rpartition('\n')[2]
        raise TPAError(f'Testing {paper_hosts()[host]} failed ({last}). See {log} for the full output.')
    report = json.loads((work_dir / 'results.json').read_text(encoding='utf-8'))
    return {
        'host': paper_hosts()[host],
        'base': report['host'],
        'tpa': report['tpa'],
        'gain': report['gain'],
        'classes_covered': report['bank']['classes_covered'],
        'num_classes': report['bank']['num_classes'],
        'seconds_per_image': report['seconds_per_image'],
    }


def show(results: list[dict]) -> None:
    from tpa_mmseg.console import print_table, signed

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
    print_table(columns, rows, align='lrrrrr')


def draw(hosts: list[str], out: Path) -> None:
    """Draws one row for each host: a scene, its ground truth, the host, TPA, and the difference."""
    import torch
    from mmengine.config import Config
    from mmseg.apis import inference_model, init_model
    from tpa_tools.scene_images import comparison_grid

    from tpa_mmseg.io import write_png
    from tpa_mmseg.miniature.files import scene

    torch.set_num_threads(1)
    indices = (index for index in range(1000) if scene('test', index).labels.shape == SHOWN_SIZE)
    rows = []
    for host, index in zip(hosts, indices, strict=False):
        cfg = Config.fromfile(config_of(host))
        cfg.model.bank = str(WORK_DIR / host / 'bank.safetensors')
        result = inference_model(init_model(cfg, device='cpu'), f'miniature://images/test/{index:05d}.png')
        labels = (result.host_sem_seg.data[0].numpy(), result.pred_sem_seg.data[0].numpy())
        rows.append((paper_hosts()[host], scene('test', index), *labels))
    write_png(out, comparison_grid(rows))


if __name__ == '__main__':
    main()
