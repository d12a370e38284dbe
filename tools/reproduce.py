#!/usr/bin/env python
"""Reproduces the tables and figures of the paper: run experiments, see how far they are, check and report them."""

from __future__ import annotations

import argparse

from tpa_mmseg.engine.cli import run_tool
from tpa_mmseg.reproduce.commands import check, list_runs, report, run

COMMANDS = (list_runs, run, report, check)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    for command in COMMANDS:
        command.add_parser(commands)
    args = parser.parse_args()
    args.main(args)


if __name__ == '__main__':
    run_tool(main)
