#!/usr/bin/env python
"""Writes all configs of hosts from the catalog, with their index (README.md, metafiles) and tables of the docs.

With --out DIR it writes the configs of your own entries: those of installed packages (entry points of the group
tpa_mmseg.catalog) and of --catalog FILE.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tpa_tools.command import run_tool


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument('--write', action='store_true', help='write what differs, and remove configs without an entry')
    action.add_argument('--check', action='store_true', help='write nothing; exit code 1 if a file differs')
    parser.add_argument('--out', type=Path, metavar='DIR', help='write the configs of your own entries to this folder')
    parser.add_argument('--catalog', type=Path, nargs='+', default=[], metavar='FILE', help='YAML files with entries')
    args = parser.parse_args(argv)
    if args.catalog and args.out is None:
        parser.error('--catalog needs --out: the configs of the package are written from its own catalog.')
    run_tool(run, args)


def run(args: argparse.Namespace) -> None:
    from tpa_tools.config_writing import generate, left_over, shown, stale

    from tpa_mmseg.io import atomic_write

    texts = generate(args.out, args.catalog)
    changed, others = stale(texts), left_over(texts) if args.out is None else []
    if args.check:
        for path in changed:
            print(f'{shown(path)} differs from the catalog: run python tools/config_index.py --write.')
        for path in others:
            print(f'{shown(path)} is not in the catalog: add an entry, or remove it.')
        sys.exit(1 if changed or others else 0)
    for path in changed:
        with atomic_write(path, 'w') as file:
            file.write(texts[path])
    for path in others:
        path.unlink()
    print(f'{len(texts)} files: {len(changed)} written, {len(others)} removed.')


if __name__ == '__main__':
    main()
