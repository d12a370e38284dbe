#!/usr/bin/env python
"""Lists the weights that configs need, fetches them where there is internet, and checks those that are there."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mmengine.config import Config
from mmengine.logging import MMLogger
from tqdm import tqdm

from tpa_mmseg.catalog import CONFIGS
from tpa_mmseg.engine.cli import run_tool
from tpa_mmseg.errors import TPAError, user_message
from tpa_mmseg.evaluation.table import render
from tpa_mmseg.weights.files import weights_dir
from tpa_mmseg.weights.needs import needs
from tpa_mmseg.weights.sources import Weights


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('command', choices=('list', 'fetch', 'check'), help='what to do')
    parser.add_argument('configs', nargs='*', metavar='CONFIG', help='config files (default: all of configs/)')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    paths = args.configs or sorted(path for path in CONFIGS.glob('*/*.py') if path.parent.name != '_base_')
    wanted = gather(paths)
    if not wanted:
        print('These configs need no weights.')
        return
    sys.exit({'list': show, 'fetch': fetch, 'check': check}[args.command](wanted))


def gather(paths: Sequence[str | Path]) -> dict[Weights, list[str]]:
    """The weights that configs need -> the places that ask for them."""
    found: dict[str, tuple[Weights, set[str]]] = {}
    with few_words():
        for path in tqdm(paths, desc='Reading configs', unit=' configs', disable=None, leave=False):
            for place, weights in needs(read_model(path)):
                found.setdefault(weights.title, (weights, set()))[1].add(place.rpartition('.')[2])
    return {weights: sorted(places) for weights, places in found.values()}


def read_model(path: str | Path) -> dict | None:
    if not Path(path).is_file():
        raise TPAError(f'There is no config file {path}.')
    try:
        return Config.fromfile(path).get('model')
    except (KeyError, TypeError, SyntaxError, FileNotFoundError) as error:
        raise TPAError(f'The config {path} cannot be read ({user_message(error)}).') from error


@contextmanager
def few_words() -> Iterator[None]:
    """A config says which environment variables it has read; once for each of many configs is too often."""
    logger = MMLogger.get_current_instance()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def show(wanted: dict[Weights, list[str]]) -> int:
    """Prints what is needed, and what to bring where it is missing."""
    rows = []
    for weights, places in wanted.items():
        where = weights.locate()
        rows.append((weights.title, ', '.join(places), in_words(weights.size), weights.license, where or 'missing'))
    print(render(['model', 'needed as', 'size', 'license', 'file'], rows, align='llrll'))
    missing = [weights for weights in wanted if weights.locate() is None]
    if missing:
        print(f'\nWithout internet, bring these and put them into {weights_dir()} (TPA_WEIGHTS names another folder):')
        print(render(['bring', 'save as'], [(weights.source, weights.target) for weights in missing]))
    return 0


def fetch(wanted: dict[Weights, list[str]]) -> int:
    """Downloads what is missing."""
    failed = 0
    for weights in wanted:
        where = weights.locate()
        if where is not None:
            print(f'{weights.title}: is there, {where}')
            continue
        try:
            print(f'{weights.title}: fetched, {weights.fetch()}')
        except TPAError as error:
            failed += 1
            print(f'error: {user_message(error)}', file=sys.stderr, flush=True)
    return 1 if failed else 0


def check(wanted: dict[Weights, list[str]]) -> int:
    """Builds every model from its file."""
    failed = 0
    for weights in wanted:
        where = weights.locate()
        try:
            if where is None:
                raise TPAError(f'is missing; bring {weights.source} and save it as {weights.target}, or fetch it.')
            weights.load(where)
            print(f'{weights.title}: fine, {where}')
        except TPAError as error:
            failed += 1
            print(f'{weights.title}: {user_message(error)}')
    return 1 if failed else 0


def in_words(megabytes: int | None) -> str:
    if megabytes is None:
        return 'unknown'
    return f'{megabytes} MB' if megabytes < 1000 else f'{megabytes / 1000:.1f} GB'


if __name__ == '__main__':
    run_tool(main)
