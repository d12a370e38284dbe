#!/usr/bin/env python
"""Writes all configs of hosts from the catalog, with their index (README.md, metafiles) and tables of the docs.

With --out DIR it writes the configs of your own entries: those of installed packages (entry points of the group
tpa_mmseg.catalog) and of --catalog FILE.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tpa_tools.config_writing.docs import docs_texts
from tpa_tools.config_writing.index import ROOT, index_texts
from tpa_tools.config_writing.leaves import Leaves, backbones_text

from tpa_mmseg import catalog
from tpa_mmseg.catalog import CONFIGS
from tpa_mmseg.engine.cli import run_tool
from tpa_mmseg.io import atomic_write

#: Configs that are not regular, and are written by hand.
BY_HAND = {CONFIGS / 'miniature' / 'fcn_mini.py'}


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument('--write', action='store_true', help='write what differs, and remove configs without an entry')
    action.add_argument('--check', action='store_true', help='write nothing; exit code 1 if a file differs')
    parser.add_argument('--out', type=Path, metavar='DIR', help='write the configs of your own entries to this folder')
    parser.add_argument('--catalog', type=Path, nargs='+', default=[], metavar='FILE', help='YAML files with entries')
    args = parser.parse_args()
    if args.catalog and args.out is None:
        parser.error('--catalog needs --out: the configs of the package are written from its own catalog.')
    return args


def generate(out: Path | None = None, files: list[Path] | None = None) -> dict[Path, str]:
    """Path -> text of all files that this tool keeps. Args: out, files: as on the command line."""
    own = catalog.shipped()
    if out is not None:
        return Leaves(catalog.load(*files or ()), own, out.resolve()).generate()
    return {
        **Leaves(own).generate(),
        CONFIGS / '_base_' / 'backbones.py': backbones_text(own),
        **index_texts(own),
        **docs_texts(own),
    }


def stale(texts: dict[Path, str]) -> list[Path]:
    """Files whose text differs, or that do not exist."""
    return [path for path, text in texts.items() if not path.is_file() or path.read_text(encoding='utf-8') != text]


def left_over(texts: dict[Path, str]) -> list[Path]:
    """Configs beside the generated ones that the catalog does not have."""
    folders = {path.parent for path in texts if path.suffix == '.py' and path.parent.name != '_base_'}
    return sorted(path for folder in folders for path in folder.glob('*.py') if path not in {*texts, *BY_HAND})


def main() -> None:
    args = parse_args()
    texts = generate(args.out, args.catalog)
    changed, others = stale(texts), left_over(texts) if args.out is None else []
    if args.check:
        for path in changed:
            print(f'{_shown(path)} differs from the catalog: run python tools/config_index.py --write.')
        for path in others:
            print(f'{_shown(path)} is not in the catalog: add an entry, or remove it.')
        if changed or others:
            sys.exit(1)
        return
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, 'w') as file:
            file.write(texts[path])
    for path in others:
        path.unlink()
    print(f'{len(texts)} files: {len(changed)} written, {len(others)} removed.')


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


if __name__ == '__main__':
    run_tool(main)
