#!/usr/bin/env python
"""Tests a config: builds the bank of prototypes, then scores host and TPA in one pass over the data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tpa_tools.command import add_config_arguments, run_tool


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    add_config_arguments(parser)
    bank = parser.add_mutually_exclusive_group()
    bank.add_argument('--bank', metavar='FILE', help='use this bank instead of building one')
    bank.add_argument('--no-tpa', action='store_true', help='test the host without TPA')
    parser.add_argument(
        '--show-dir', metavar='DIR', help='write a figure per image: input, ground truth, host, TPA, difference'
    )
    parser.add_argument('--out', metavar='DIR', help='write the predicted labels as PNG files')
    run_tool(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    from tpa_mmseg.engine.config import (
        add_hook,
        load_config,
        parse_options,
        start_runner,
        use_host_alone,
        use_tpa,
    )

    cfg = load_config(args.config, args.work_dir, parse_options(args.cfg_options), args.launcher)
    if args.no_tpa:
        use_host_alone(cfg)
    else:
        use_tpa(cfg, args.bank)
    add_hook(cfg, type='ProgressHook')
    add_hook(cfg, type='ReportHook')
    if args.show_dir:
        add_hook(cfg, type='ComparisonHook', out_dir=args.show_dir)
    if args.out:
        cfg.test_evaluator.output_dir = args.out
    start_runner(cfg).test()


if __name__ == '__main__':
    main()
