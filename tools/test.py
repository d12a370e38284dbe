#!/usr/bin/env python
"""Tests a config: builds the bank of prototypes, then scores host and TPA in one pass over the data."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tpa_tools.command import add_check, add_config_arguments, run_tool


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    add_config_arguments(parser)
    parser.add_argument('checkpoint', nargs='?', help='weights of the segmentor in a SegmentorHost')
    bank = parser.add_mutually_exclusive_group()
    bank.add_argument('--bank', metavar='FILE', help='use this bank instead of building one')
    bank.add_argument(
        '--no-tpa', action='store_true', help='test the host without TPA; results go to no-tpa in the work directory'
    )
    parser.add_argument(
        '--show-dir', metavar='DIR', help='write a figure per image: input, ground truth, host, TPA, difference'
    )
    parser.add_argument('--out', metavar='DIR', help='write the predicted labels as PNG files')
    add_check(parser)
    run_tool(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    from tpa_mmseg.engine.config import (
        add_hook,
        checked_config,
        parse_options,
        require_data,
        start_runner,
        write_labels,
    )
    from tpa_mmseg.engine.readiness import report_readiness
    from tpa_mmseg.engine.report_hook import refuse_other_settings
    from tpa_mmseg.engine.variant import Variant

    options = parse_options(args.cfg_options)
    variant = Variant(options, not args.no_tpa, args.bank, args.checkpoint)
    cfg = variant.of(checked_config(args.config, args.work_dir, options, args.launcher))
    if args.check:
        report_readiness(cfg)
        return
    require_data(cfg)
    settings = variant.settings(cfg)
    refuse_other_settings(cfg.work_dir, settings)
    add_hook(cfg, type='ProgressHook')
    add_hook(cfg, type='ReportHook', settings=settings)
    if args.show_dir:
        add_hook(cfg, type='ComparisonHook', out_dir=args.show_dir)
    if args.out:
        write_labels(cfg, args.out)
    start_runner(cfg).test()


if __name__ == '__main__':
    main()
