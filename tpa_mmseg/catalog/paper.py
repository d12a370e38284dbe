"""The paper's tables as data, mIoU in percent. Nothing here was measured with this code.

Rows are found by ``key``: in tables of hosts the row of a config, ``<host>[-<variant>]_<backbone>``, followed by
``+tpa`` for the numbers with TPA; in ablations the key of the experiment's setting; in ``cost`` the backbone.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path


@cache
def tables() -> dict:
    """Content of ``paper.json``, not to be changed."""
    return json.loads((Path(__file__).parent / 'paper.json').read_text(encoding='utf-8'))


def score(row: str, benchmark: str, tpa: bool = False) -> float | None:
    """mIoU of a host, or of a host with TPA; None where the paper prints none.

    Args:
        row: ``<host>[-<variant>]_<backbone>``.
        benchmark: Name of the benchmark.
        tpa: With TPA.
    """
    return _scores().get(f'{row}+tpa' if tpa else row, {}).get(benchmark)


@cache
def _scores() -> dict[str, dict[str, float | None]]:
    # A row that is in two tables has the same numbers in both.
    return {row['key']: row['scores'] for table in tables()['tables'].values() for row in table}


def gain(experiment: str, row: str, setting: str, benchmark: str) -> float | None:
    """The gain in mIoU that an ablation prints; None where it prints none.

    Args:
        experiment: Name of the experiment; ``'components'``, ``'k'`` and ``'extractor'`` print gains.
        row: Host and backbone of the run.
        setting: Key of the setting of TPA.
        benchmark: Name of the benchmark.
    """
    table = tables()['ablations'].get(experiment, {'row': '', 'rows': ()})
    found = (entry['gains'].get(benchmark) for entry in table['rows'] if entry['key'] == setting)
    return next(found, None) if table['row'] == row else None


def costs(backbone: str) -> dict[str, float]:
    """The paper's costs with a backbone, in the columns of the experiment ``cost``; empty where it prints none."""
    found = (row for row in tables()['cost'] if row['key'] == backbone)
    return {column: value for column, value in next(found, {}).items() if column != 'key'}


def scores() -> dict[str, dict[str, float]]:
    """Key of every row that has mIoU -> benchmark -> mIoU."""
    return {
        key: {benchmark: score for benchmark, score in row.items() if score is not None}
        for key, row in _scores().items()
    }


def about_base_rows() -> str:
    """A sentence about where the paper's numbers of hosts alone come from: no tolerance is for that."""
    sources = (f'{" and ".join(hosts)} from {source}' for source, hosts in tables()['base_rows'].items())
    return (
        f'The paper takes the base of {", of ".join(sources)}: beyond the tolerance, a base may be of another protocol.'
    )
