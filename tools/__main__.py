"""The command ``tpa``: every tool as a sub-command. Imports only the tool that is asked for."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import version

#: Sub-command -> its line in the help. The module has the same name, with underscores.
COMMANDS = {
    'demo': 'run five hosts with and without TPA on synthetic scenes; nothing is downloaded',
    'doctor': 'check the environment',
    'prepare': 'prepare datasets from their archives, and check them',
    'weights': 'list, download and check the weights that configs need',
    'check': 'check a config before it is run: keys, values, weights, data, bank, GPU, disk space',
    'test': 'test a config: the host and TPA in one pass',
    'build-bank': 'build a prototype bank without testing, or add images to one',
    'bank': 'show what is in a bank: anchors, agreement of its halves, classes that are alike',
    'segment': 'segment images and videos with your own classes',
    'webapp': 'open the local web demo',
    'reproduce': "run the paper's experiments and report them",
}


def main(argv: Sequence[str] | None = None) -> None:
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(
        prog='tpa',
        description='Test-time prototype adaptation for semantic segmentation.',
        epilog='tpa COMMAND --help lists the options of a command.',
    )
    parser.add_argument('--version', action='version', version=f'tpa_mmseg {version("tpa_mmseg")}')
    commands = parser.add_subparsers(dest='command', required=True, metavar='COMMAND')
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text, add_help=False)
    command = parser.parse_args(argv[:1]).command
    tool = importlib.import_module(f'tpa_tools.{command.replace("-", "_")}')
    tool.main(argv[1:], f'tpa {command}')


if __name__ == '__main__':
    main()
