#!/usr/bin/env python
"""Lists the weights that configs need, downloads what is missing, and checks what is on this machine."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tpa_tools.command import run_tool

if TYPE_CHECKING:
    from tpa_mmseg.weights.needs import Need


def parse_args(argv: Sequence[str] | None, prog: str | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog, description=__doc__)
    parser.add_argument('command', choices=('list', 'download', 'check'), help='what to do')
    parser.add_argument('configs', nargs='*', metavar='CONFIG', help='config files (default: all of configs/)')
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    run_tool(run, parse_args(argv, prog))


def run(args: argparse.Namespace) -> None:
    from tpa_mmseg.catalog import CONFIGS

    paths = args.configs or sorted(path for path in CONFIGS.glob('*/*.py') if path.parent.name != '_base_')
    wanted = gather(paths)
    if not wanted:
        print('These configs need no weights.')
        return
    sys.exit({'list': show, 'download': download, 'check': check}[args.command](wanted))


def gather(paths: Sequence[str | Path]) -> list[tuple[Need, list[str]]]:
    """Returns the weights that configs need, each once, and the places that ask for them."""
    from tpa_mmseg.console import track
    from tpa_mmseg.weights.needs import needs

    found: dict[str, tuple[Need, set[str]]] = {}
    with few_words():
        for path in track(paths, 'Reading configs', unit='configs', transient=True):
            for need in needs(read_model(path)):
                found.setdefault(need.source.title, (need, set()))[1].add(need.place.rpartition('.')[2])
    return [(need, sorted(places)) for need, places in found.values()]


def read_model(path: str | Path) -> dict | None:
    from mmengine.config import Config

    from tpa_mmseg.errors import TPAError, user_message

    if not Path(path).is_file():
        raise TPAError(f'Config not found: {path}. Check the path.')
    try:
        return Config.fromfile(path).get('model')
    except (KeyError, TypeError, SyntaxError, FileNotFoundError) as error:
        raise TPAError(f'The config {path} cannot be read ({user_message(error)}).') from error


@contextmanager
def few_words() -> Iterator[None]:
    """A config says which environment variables it has read; once for each of many configs is too often."""
    from mmengine.logging import MMLogger

    logger = MMLogger.get_current_instance()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def show(wanted: list[tuple[Need, list[str]]]) -> int:
    """Prints what is needed, and what to download by hand if it is missing."""
    from tpa_mmseg.console import print_table
    from tpa_mmseg.weights.files import weights_dir

    rows = []
    for (_, source, _), places in wanted:
        where = source.locate() or 'missing'
        rows.append((source.title, ', '.join(places), in_words(source.megabytes), source.license, where))
    print_table(['Model', 'Needed as', 'Size', 'License', 'File'], rows, align='llrll')
    missing = [source for (_, source, _), _ in wanted if source.locate() is None]
    if missing:
        print(f'\nWithout internet, copy these files to {weights_dir()} (TPA_WEIGHTS names another folder):')
        print_table(['Download', 'Save as'], [(source.origin, source.target) for source in missing])
    return 0


def download(wanted: list[tuple[Need, list[str]]]) -> int:
    """Downloads what is missing."""
    from tpa_mmseg.errors import TPAError, printable, user_message

    failed = 0
    for (_, source, _), _ in wanted:
        where = source.locate()
        try:
            path = where or source.download(keep=True)
            print(printable(f'{source.title}: {"downloaded" if where is None else "already downloaded"} ({path})'))
        except TPAError as error:
            failed += 1
            print(f'error: {user_message(error)}', file=sys.stderr, flush=True)
    return 1 if failed else 0


def check(wanted: list[tuple[Need, list[str]]]) -> int:
    """Builds every model from its file."""
    from tpa_mmseg.errors import TPAError, printable, user_message

    failed = 0
    for (place, source, part), _ in wanted:
        where = source.locate()
        try:
            if where is None:
                raise TPAError(f'missing. Download {source.origin} and save it as {source.target}.')
            build(place, part, where)
            print(printable(f'{source.title}: complete ({where})'))
        except TPAError as error:
            failed += 1
            print(printable(f'{source.title}: {user_message(error)}'))
    return 1 if failed else 0


def build(place: str, part: dict, path: Path) -> None:
    """Builds a model from its part of the config. Raises TPAError if its file does not give all of it."""
    from mmengine.registry import DefaultScope
    from mmseg.registry import MODELS

    from tpa_mmseg.clip.source import CLIPSpec
    from tpa_mmseg.sam.encoder import SAMEncoder
    from tpa_mmseg.weights.files import load_state_dict

    key = place.rpartition('.')[2]
    if key == 'clip':
        clip = CLIPSpec.of(part)
        clip.tower()
        clip.text_tower()
    elif key == 'sam':
        SAMEncoder(**part)
    elif key == 'checkpoint':
        load_state_dict(path)
    else:
        with DefaultScope.overwrite_default_scope('mmseg'):
            MODELS.build(part)


def in_words(megabytes: int | None) -> str:
    if megabytes is None:
        return 'unknown'
    return f'{megabytes} MB' if megabytes < 1000 else f'{megabytes / 1000:.1f} GB'


if __name__ == '__main__':
    main()
