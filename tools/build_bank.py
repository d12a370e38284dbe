#!/usr/bin/env python
"""Builds a bank of prototypes without testing, or adds images to one."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from tpa_tools.command import (
    LAUNCHERS,
    add_check,
    add_config_arguments,
    add_launch_options,
    add_shard_options,
    run_tool,
)

SHARD_LAUNCHERS = ('local', 'slurm', 'ray')


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    add_config_arguments(parser, launcher=False)
    parser.add_argument('--out', required=True, metavar='FILE', help='where the bank goes')
    parser.add_argument('--extend', metavar='FILE', help='bank to add to; images that it contains are left out')
    parser.add_argument('--pool-size', type=int, metavar='N', help='number of images (default: as in the config)')
    parser.add_argument('--pool-seed', type=int, metavar='N', help='seed of the draw')
    parser.add_argument('--pool', metavar='DIR', help='folder of images to use instead of the test set')
    parser.add_argument(
        '--launcher',
        choices=dict.fromkeys((*LAUNCHERS, *SHARD_LAUNCHERS)),
        help='how the ranks of a job are started: none (default), pytorch, slurm or mpi; with --shards, where the '
        'shards run: local (default), slurm or ray',
    )
    shards = parser.add_argument_group(
        'bulk work', 'DIR may also be a tar or Parquet file, a pattern, a list of files, or an address such as s3://...'
    )
    add_shard_options(shards)
    add_launch_options(parser, 'shard', shared=False, launcher=False)
    add_check(parser)
    args = parser.parse_args(argv)
    launchers = LAUNCHERS if args.shards is None else SHARD_LAUNCHERS
    args.launcher = args.launcher or launchers[0]
    if args.launcher not in launchers:
        parser.error(f'--launcher {args.launcher} {"needs" if args.shards is None else "cannot be used with"} --shards')
    if args.shards is not None and args.pool is None:
        parser.error('--shards needs --pool')
    run_tool(run if args.shards is None else run_shards, args)


def run_shards(args: argparse.Namespace) -> None:
    """Builds the bank of any number of images in shards."""
    from tpa_mmseg.bulk import BulkJob, build_bank, list_parts, sample
    from tpa_mmseg.engine.config import load_config, parse_options
    from tpa_mmseg.launch import LaunchOptions

    folder = Path(args.work_dir or f'{args.out}.parts')
    cfg = load_config(args.config, folder, parse_options(args.cfg_options))
    config = folder.absolute() / 'config.py'
    folder.mkdir(parents=True, exist_ok=True)
    cfg.dump(config)
    parts = list_parts([args.pool])
    if args.pool_size:
        parts = sample(parts, args.pool_size, args.pool_seed or 0)
    model = {'classes': None, 'host': str(config)}
    job = BulkJob(folder, model, args.shards, 'png', args.batch_size, args.image_column, args.extend)
    if build_bank(job, parts, LaunchOptions.of(args), Path(args.out)) is not None:
        print(f'The bank is in {args.out}.')


def run(args: argparse.Namespace) -> None:
    from mmengine.logging import print_log

    from tpa_mmseg.core import PrototypeBank
    from tpa_mmseg.core.bank_file import check_fingerprint
    from tpa_mmseg.datasets import PoolOptions, build_pool
    from tpa_mmseg.engine.bank_builder import build_bank, diagnose, save_on_main
    from tpa_mmseg.engine.config import checked_config, parse_options, require_data, start_runner
    from tpa_mmseg.engine.distributed import unwrap
    from tpa_mmseg.engine.readiness import report_readiness
    from tpa_mmseg.errors import TPAError
    from tpa_mmseg.evaluation import bank_caveats, describe_bank

    cfg = checked_config(args.config, args.work_dir, parse_options(args.cfg_options), args.launcher)
    if cfg.model.type != 'TPASegmentor':
        raise TPAError(f'A bank needs a TPASegmentor, but the model of {args.config} is {cfg.model.type}.')
    given = {'size': args.pool_size, 'seed': args.pool_seed, 'folder': args.pool}
    options = next(
        (hook.get('pool') for hook in cfg.get('custom_hooks', []) if hook['type'] == 'PrototypeBankHook'), {}
    )
    options = PoolOptions.of({**(options or {}), **{key: value for key, value in given.items() if value is not None}})
    if args.check:
        report_readiness(cfg)
        return
    require_data(cfg)
    runner = start_runner(cfg)
    model = unwrap(runner.model)
    pool = build_pool(cfg.test_dataloader.dataset, options)
    model.set_classes(pool.dataset.metainfo)
    base = None
    if args.extend:
        base = PrototypeBank.load(args.extend)
        check_fingerprint(base.fingerprint, model.fingerprint(), args.extend)
        if base.rule != model.anchor_rule:
            raise TPAError(
                f'The bank {args.extend} was made with other anchors ({base.rule}) than the config asks for.'
            )
        fresh = pool.without(base.pool)
        print_log(f'{len(fresh)} of {len(pool)} images are new to the bank.', 'current')
        pool = fresh
    loader = cfg.test_dataloader
    how = loader.get('num_workers', 0), loader.get('batch_size') or 1
    bank = build_bank(model, pool, *how)
    if base is None and (model.host.images_are_independent or model.fusion.consistent):
        bank.diagnosis = diagnose(model, pool, {'bank': (bank, model.fusion)}, *how)['bank']
    if base is not None:
        if base.diagnosis is not None:
            print_log('Whether labels follow the image is not known of a bank that was extended.', 'current')
        base.fingerprint.pop('pool', None)
        base.merge(bank)
        bank = base
    save_on_main(bank, Path(args.out))
    print_log(describe_bank(bank, model.dataset_meta['classes']), 'current')
    for text in bank_caveats(bank.coverage(), bank.rule):
        print_log(text, 'current', logging.WARNING)
    print_log(f'The bank is in {args.out}.', 'current')


if __name__ == '__main__':
    main()
