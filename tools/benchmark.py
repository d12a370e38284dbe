#!/usr/bin/env python
"""Measures what the way we compute saves, as ratios in one run.

Times are medians of interleaved repetitions after a warm-up, in a fresh process per case. Peak memory is that of a
fresh process per figure, above what it holds once its inputs are made (see docs/performance.md).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tpa_tools.command import run_tool

SUITES = ('core', 'hosts', 'gpu', 'precision')
CLOCKS = ('wall', 'cpu')
PRECISIONS = ('auto', 'float32', 'float16', 'bfloat16')


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        'suite',
        nargs='?',
        default='core',
        choices=SUITES,
        help='what to measure: the core or hosts against plain implementations, the stages of an image on a GPU, or '
        'what half precision changes in the synthetic benchmark (default: core)',
    )
    parser.add_argument('--json', metavar='FILE', help='also write the report to this file (gpu: default gpu.json)')
    parser.add_argument('--threads', type=int, metavar='N', help='threads of PyTorch (default: its own choice)')
    parser.add_argument('--markdown', action='store_true', help='print the table in Markdown')
    parser.add_argument('--quick', action='store_true', help='tiny problems, once: only to see that it runs')
    ratios = parser.add_argument_group('core and hosts')
    ratios.add_argument('--repeats', type=int, default=5, metavar='N', help='timed repetitions (default: 5)')
    ratios.add_argument(
        '--clock', default='wall', choices=CLOCKS, help='time that passes, or time of computing: cpu for a busy machine'
    )
    ratios.add_argument('--only', metavar='TEXT', help='measure only the cases whose name contains this')
    networks = parser.add_argument_group('gpu and precision')
    networks.add_argument('--hosts', nargs='+', metavar='NAME', help='hosts to measure (default: all)')
    networks.add_argument('--images', type=int, default=30, metavar='N', help='images to measure (default: 30)')
    gpu = parser.add_argument_group('gpu')
    gpu.add_argument('--precision', nargs='+', default=['auto'], choices=PRECISIONS, help='(default: auto)')
    gpu.add_argument('--batch-size', type=int, default=1, metavar='N', help='images per step (default: 1)')
    gpu.add_argument('--workers', type=int, default=4, metavar='N', help='processes that read images (default: 4)')
    gpu.add_argument('--compile', action='store_true', help='run networks by torch.compile')
    gpu.add_argument('--device', choices=('cuda', 'cpu'), help='(default: cuda if there is a GPU)')
    run_tool(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    import torch

    if args.threads:
        torch.set_num_threads(args.threads)
    {'gpu': run_gpu, 'precision': run_precision}.get(args.suite, run_ratios)(args)


def run_gpu(args: argparse.Namespace) -> None:
    """Measures the stages of an image, and writes a JSON file to send and a Markdown table beside it."""
    from dataclasses import asdict
    from pathlib import Path

    import torch
    from tpa_tools.benchmarking.gpu import GPU_HOSTS, GPUOptions, gpu_machine, measure_host
    from tpa_tools.benchmarking.measure import machine
    from tpa_tools.benchmarking.report import gpu_table

    from tpa_mmseg.catalog import paper
    from tpa_mmseg.console import render
    from tpa_mmseg.io import atomic_write, write_json
    from tpa_mmseg.options import one_of

    device = args.device or ('cuda' if torch.cuda.is_available() else 'cpu')
    images, warm_up = (2, 1) if args.quick else (args.images, 5)
    images = max(images, args.batch_size)  # at least one whole batch after the warm-up
    options = GPUOptions(device, images, warm_up, args.batch_size, args.workers, args.compile, tiny=args.quick)
    hosts = [one_of('--hosts', host, GPU_HOSTS) for host in args.hosts or GPU_HOSTS]
    entries = []
    for host in hosts:
        for precision in args.precision:
            print(f'measuring {host}, {precision} ...', file=sys.stderr, flush=True)
            entries.append(measure_host(host, precision, options))
    costs = paper.costs('vit-b16')
    table = render(*gpu_table(entries, costs), markdown=True)
    about = {**machine(), **gpu_machine(device)}
    note = (
        f'Milliseconds per image (launches, waits) on {about["gpu"] or about["cpu"]}, PyTorch {about["torch"]}, '
        f'CUDA {about["cuda"]}; ViT-B/16, 375 x 500 images, 21 classes, 56 queries; {images} images after {warm_up}.'
    )
    if device == 'cpu':
        note += ' This is a rehearsal on a CPU: nothing in it is a figure of a GPU.'
    file = Path(args.json or 'gpu.json')
    report = {'suite': 'gpu', 'quick': args.quick, 'machine': about, 'options': asdict(options)}
    write_json(file, {**report, 'paper': costs, 'hosts': entries})
    with atomic_write(file.with_suffix('.md')) as stream:
        stream.write(f'{table}\n\n{note}\n'.encode())
    print(f'{table}\n\n{note}\nWritten to {file} and {file.with_suffix(".md")}: please send us the first.')


def run_precision(args: argparse.Namespace) -> None:
    """Shows what half precision changes in the synthetic benchmark."""
    from tpa_tools.benchmarking.precision import measure_precisions, precision_table
    from tpa_tools.demo import paper_hosts

    from tpa_mmseg.console import print_table, render
    from tpa_mmseg.io import write_json
    from tpa_mmseg.options import one_of

    known = tuple(paper_hosts())
    hosts = [one_of('--hosts', host, known) for host in args.hosts or known]
    images = 2 if args.quick else args.images
    entries = measure_precisions(hosts, images, max(1, images * 2 // 3))
    if args.markdown:
        print(render(*precision_table(entries), markdown=True))
    else:
        print_table(*precision_table(entries))
    if args.json:
        write_json(args.json, {'suite': 'precision', 'images': images, 'hosts': entries})


def run_ratios(args: argparse.Namespace) -> None:
    """Measures cases against plain implementations."""
    from tpa_tools.benchmarking.core_cases import core_cases
    from tpa_tools.benchmarking.host_cases import host_cases
    from tpa_tools.benchmarking.measure import machine, measure
    from tpa_tools.benchmarking.report import table

    from tpa_mmseg.console import print_table, render
    from tpa_mmseg.errors import TPAError
    from tpa_mmseg.io import write_json

    # A suite gives its cases, tiny ones when asked to be quick.
    suite = {'core': core_cases, 'hosts': host_cases}[args.suite]
    about, entries = {**machine(), 'clock': args.clock}, []
    cases = [case for case in suite(args.quick) if (args.only or '') in case.name]
    if not cases:
        raise TPAError(f'No case of {args.suite} has {args.only!r} in its name: leave --only out to see all names.')
    for case in cases:
        print(f'measuring {case.title}, {case.setting} ...', file=sys.stderr, flush=True)
        entries.append(measure(case, 1 if args.quick else args.repeats, args.clock))
    if args.markdown:
        print(render(*table(entries), markdown=True))
    else:
        print_table(*table(entries))
    print('{cpu}, {cores} cores, {threads} threads, PyTorch {torch}, Python {python}, {clock} clock'.format(**about))
    if about['load'] > about['cores'] / 2:
        print(f'Other programs were running (load {about["load"]:.1f}): they slow the many short steps of a band most.')
    if args.quick:
        print('These problems are tiny and ran once: their ratios mean nothing.')
    if args.json:
        write_json(args.json, {'suite': args.suite, 'quick': args.quick, 'machine': about, 'cases': entries})


if __name__ == '__main__':
    main()
