#!/usr/bin/env python
"""The miniature world: exports its scenes, trains its networks, and checks that they still score what they scored."""

from __future__ import annotations

import argparse
import ast
import importlib
import shutil
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from tpa_tools.command import run_tool

ROOT = Path(__file__).resolve().parent.parent
WORK_DIR = Path('work_dirs/miniature')
SETTINGS = ROOT / 'configs/_base_/miniature_training.py'
# Name of the weights -> module and the class of its settings.
TRAININGS = {
    'clip': ('train_clip', 'CLIPSettings'),
    'clip_p7': ('train_clip', 'CLIPSettings'),
    'encoder': ('train_encoder', 'EncoderSettings'),
    'sam': ('train_sam', 'SAMSettings'),
    'fcn': ('train_fcn', 'FCNSettings'),
}


SPLITS = ('train', 'val', 'test')


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    run_tool(run, parse_args(argv, prog))


def run(args: argparse.Namespace) -> None:
    import torch

    torch.set_num_threads(args.threads)
    args.run(args)


def parse_args(argv: Sequence[str] | None, prog: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog, description=__doc__, epilog='docs/miniature.md tells the rest.')
    parser.add_argument('--threads', type=int, default=1, help='threads of the networks (default: 1)')
    commands = parser.add_subparsers(dest='command', required=True)
    command = add_command(commands, 'export', run_export, 'write scenes and labels as PNG files')
    command.add_argument('root', type=Path, help='folder; MiniatureDataset(data_root=...) reads it')
    command.add_argument('--split', choices=SPLITS, default='test', help='(default: test)')
    command.add_argument('--size', type=int, default=300, help='the first so many scenes (default: 300)')
    command.add_argument('--resolution', type=int, nargs=2, metavar=('H', 'W'), help='one size (default: each its own)')
    command = add_command(commands, 'train', run_train, 'retrain the networks; resumes an interrupted training')
    command.add_argument('name', choices=TRAININGS)
    command.add_argument('--out', type=Path, help='weights file (default: <work-dir>/<name>.safetensors)')
    command.add_argument('--record', action='store_true', help='write the committed weights file instead')
    command.add_argument('--work-dir', type=Path, help=f'checkpoints and log (default: {WORK_DIR}/<name>)')
    command.add_argument('--from-scratch', action='store_true', help='leave checkpoints alone and start over')
    command.add_argument('--set', nargs='+', default=[], metavar='KEY=VALUE', help='other settings, such as steps=500')
    command = add_command(commands, 'targets', run_targets, 'measure all that the world is to show, in one pass a host')
    command.add_argument('--hosts', nargs='+', metavar='HOST', help='(default: all)')
    command.add_argument('--split', choices=SPLITS, default='val', help='(default: val; test is for the last look)')
    command.add_argument('--size', type=int, default=300, help='number of scenes (default: 300)')
    command.add_argument('--pool', type=int, default=100, help='scenes in a pool (default: 100)')
    command.add_argument('--out', type=Path, default=WORK_DIR / 'targets.json', help='(default: %(default)s)')
    add_command(commands, 'check', run_check, 'do weights and code still give the committed numbers?')
    add_command(commands, 'record', run_record, 'take the numbers of now as the committed ones')
    command = add_command(commands, 'card', run_card, 'write cards, numbers and pictures into the documentation')
    command.add_argument('--results', type=Path, metavar='FILE', help='results.json of a demo on the whole test split')
    command.add_argument('--targets', type=Path, nargs='+', default=[], metavar='FILE', help='what targets has written')
    return parser.parse_args(argv)


def add_command(commands, name: str, run, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=f'{text[0].upper()}{text[1:]}.')
    command.set_defaults(run=run)
    return command


def run_export(args: argparse.Namespace) -> None:
    from tpa_tools.miniature_training.export import export

    export(args.root, args.split, args.size, args.resolution and tuple(args.resolution))
    print(f'{args.size} scenes of {args.split} are in {args.root}.')


def run_train(args: argparse.Namespace) -> None:
    from mmengine.config import Config
    from tpa_tools.miniature_training.cards import WEIGHTS

    module_name, kind = TRAININGS[args.name]
    module = importlib.import_module(f'tpa_tools.miniature_training.{module_name}')
    kind = getattr(module, kind)
    settings = kind(**{**Config.fromfile(SETTINGS)[args.name], **parse_settings(args.set, kind)})
    work_dir = args.work_dir or WORK_DIR / args.name
    out = args.out or (WEIGHTS if args.record else work_dir) / f'{args.name}.safetensors'
    module.train(out, work_dir, settings, resume=not args.from_scratch)
    print(f'The weights are in {out}, the log of the training in {work_dir}.')


def parse_settings(texts: list[str], kind: type) -> dict:
    """Settings from the command line, KEY=VALUE each. Args: kind: the dataclass that has them."""
    from tpa_mmseg.errors import TPAError

    found = {}
    for text in texts:
        key, _, value = text.partition('=')
        names = [field.name for field in fields(kind)]
        try:
            found[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            raise TPAError(f'--set {text} is not KEY=VALUE with a number or a tuple of numbers.') from None
        if key not in names:
            raise TPAError(f'Unknown setting {key!r}. Choose from: {", ".join(names)}.')
    return found


def run_targets(args: argparse.Namespace) -> None:
    import torch
    from tpa_tools.miniature_training import targets
    from tpa_tools.miniature_training.measure import HOSTS, config_of

    from tpa_mmseg.io import write_json
    from tpa_mmseg.options import one_of

    torch.set_grad_enabled(False)
    common = (args.split, args.size, args.pool)
    hosts = [one_of('--hosts', host, tuple(HOSTS)) for host in args.hosts or HOSTS]
    truth = targets.prototypes_of_truth(config_of(hosts[0]), *common)
    found = {}
    for host in hosts:
        found[host] = targets.measure_targets(config_of(host), *common)
        print(f'{HOSTS[host]}: {found[host]}', flush=True)
        write_json(args.out, {'split': args.split, 'prototypes_of_truth': truth, 'hosts': found})
    print(targets.table(found))
    print(f'Prototypes made with the true labels alone: {truth:.2f}. Written to {args.out}.')


def measure_all() -> dict[str, dict[str, float]]:
    """The numbers of every host on the slice, as a table and as data."""
    from tpa_tools.miniature_training import guard
    from tpa_tools.miniature_training.measure import HOSTS

    from tpa_mmseg.console import print_table, signed

    numbers = {host: guard.measure_slice(host, WORK_DIR / 'check') for host in HOSTS}
    rows = [[HOSTS[host], n['base'], n['tpa'], signed(n['tpa'] - n['base'])] for host, n in numbers.items()]
    print(f'\nmIoU on {guard.SLICE.size} scenes of {guard.SLICE.split}, pool of {guard.SLICE.pool}')
    print_table(['Host', 'Base', 'TPA', 'Gain'], rows, align='lrrr')
    return numbers


def run_record(args: argparse.Namespace) -> None:
    from tpa_tools.miniature_training import guard

    guard.record(measure_all())
    print(f'Written to {guard.NUMBERS.relative_to(ROOT)}.')


def run_check(args: argparse.Namespace) -> None:
    from tpa_tools.miniature_training import guard

    expected = guard.recorded()
    numbers = measure_all()
    wrong = [guard.complaint(host, numbers[host], expected[host]) for host in numbers]
    for text in filter(None, wrong):
        print(text)
    print('Something changed.' if any(wrong) else 'All as committed.')
    sys.exit(1 if any(wrong) else 0)


def run_card(args: argparse.Namespace) -> None:
    from tpa_tools.miniature_training import page

    path = ROOT / 'docs/miniature.md'
    page.fill(path, args.results, args.targets)
    page.draw(ROOT / 'docs/images')
    if args.results is not None:
        shutil.copy(args.results.with_name('demo.png'), ROOT / 'docs/images/demo.png')
    print(f'{path.relative_to(ROOT)} has the cards and the numbers.')


if __name__ == '__main__':
    main()
