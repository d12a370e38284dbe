#!/usr/bin/env python
"""Builds a bank of prototypes without testing, or adds images to one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tpa_tools.command import add_config_arguments, run_tool


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    add_config_arguments(parser)
    parser.add_argument('--out', required=True, metavar='FILE', help='where the bank goes')
    parser.add_argument('--extend', metavar='FILE', help='bank to add to; images that it contains are left out')
    parser.add_argument('--pool-size', type=int, metavar='N', help='number of images (default: as in the config)')
    parser.add_argument('--pool-seed', type=int, metavar='N', help='seed of the draw')
    parser.add_argument('--pool', metavar='DIR', help='folder of images to use instead of the test set')
    run_tool(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    from mmengine.logging import print_log

    from tpa_mmseg.core import PrototypeBank
    from tpa_mmseg.core.bank_file import check_fingerprint
    from tpa_mmseg.datasets import PoolOptions, build_pool
    from tpa_mmseg.engine.bank_builder import build_bank, save_on_main
    from tpa_mmseg.engine.config import load_config, parse_options, start_runner
    from tpa_mmseg.engine.distributed import unwrap
    from tpa_mmseg.errors import TPAError
    from tpa_mmseg.evaluation import describe_bank

    cfg = load_config(args.config, args.work_dir, parse_options(args.cfg_options), args.launcher)
    if cfg.model.type != 'TPASegmentor':
        raise TPAError(f'A bank needs a TPASegmentor, but the model of {args.config} is {cfg.model.type}.')
    given = {'size': args.pool_size, 'seed': args.pool_seed, 'folder': args.pool}
    options = next(
        (hook.get('pool') for hook in cfg.get('custom_hooks', []) if hook['type'] == 'PrototypeBankHook'), {}
    )
    options = PoolOptions.of({**(options or {}), **{key: value for key, value in given.items() if value is not None}})

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
    bank = build_bank(model, pool, loader.get('num_workers', 0), loader.get('batch_size', 1))
    if base is not None:
        base.fingerprint.pop('pool', None)
        base.merge(bank)
        bank = base
    save_on_main(bank, Path(args.out))
    print_log(describe_bank(bank.coverage(), model.dataset_meta['classes']), 'current')
    print_log(f'The bank is in {args.out}.', 'current')


if __name__ == '__main__':
    main()
