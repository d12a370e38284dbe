#!/usr/bin/env python
"""Checks a config before it is run: every key and value, weights, data, bank, GPU and disk space. Builds no network."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tpa_tools.command import add_config_arguments, run_tool


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    add_config_arguments(parser)
    run_tool(run, parser.parse_args(argv))


def run(args: argparse.Namespace) -> None:
    from tpa_mmseg.engine.config import checked_config, parse_options
    from tpa_mmseg.engine.readiness import report_readiness
    from tpa_mmseg.engine.variant import Variant

    options = parse_options(args.cfg_options)
    report_readiness(Variant(options).of(checked_config(args.config, args.work_dir, options, args.launcher)))


if __name__ == '__main__':
    main()
