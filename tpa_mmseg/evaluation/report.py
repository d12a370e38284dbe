"""The report of a test in the types of JSON: scores of host and TPA, per class and overall, and the bank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from ..core import PrototypeBank
from ..errors import printable
from .counts import SCORES, ClassScores


def report_of(classes: Sequence[str], host: ClassScores, tpa: ClassScores | None = None) -> dict:
    """Returns ``host``, ``tpa``, ``gain`` and ``per_class``, with None for missing values.

    Args:
        classes: Name of every class.
        host: Scores of the host alone.
        tpa: Scores with TPA, if there is any.
    """
    report: dict = {'host': {name: _known(host.overall[name]) for name in SCORES}}
    if tpa is not None:
        report['tpa'] = {name: _known(tpa.overall[name]) for name in SCORES}
        report['gain'] = {name: _gain(host.overall[name], tpa.overall[name]) for name in SCORES}
    report['per_class'] = []
    for i, name in enumerate(classes):
        entry = {'name': name, 'host_iou': _known(host.iou[i])}
        if tpa is not None:
            entry |= {'tpa_iou': _known(tpa.iou[i]), 'gain': _gain(host.iou[i], tpa.iou[i])}
        report['per_class'].append({**entry, 'support': host.support[i]})
    return report


def with_bank(report: dict, bank: PrototypeBank | None, file: Path | None = None) -> dict:
    """Adds a bank to a report: its anchors to their classes, the rest as ``bank``.

    Args:
        report: From :func:`report_of`; it is not changed.
        bank: The bank that was used, None without one.
        file: Its path.
    """
    if bank is None:
        return {**report, 'bank': None}
    coverage = bank.coverage()
    per_class = [
        {**entry, 'anchors': count} for entry, count in zip(report['per_class'], coverage.anchors, strict=True)
    ]
    summary = {
        'path': None if file is None else str(file),
        'images': coverage.images,
        'classes_covered': sum(coverage.covered),
        'num_classes': len(coverage.covered),
        'anchors': sum(coverage.anchors),
        'diagnosis': None if bank.diagnosis is None else vars(bank.diagnosis),
    }
    return {**report, 'per_class': per_class, 'bank': summary}


def describe_bank(bank: PrototypeBank, names: Sequence[str]) -> str:
    """Describes a bank in one line: size, coverage, anchors; and whether labels follow the image, where it is known."""
    coverage = bank.coverage()
    text = (
        f'Bank of {coverage.images} images: {sum(coverage.covered)} of {len(names)} classes covered, '
        f'{sum(coverage.anchors)} anchors'
    )
    missing = [name for name, covered in zip(names, coverage.covered, strict=True) if not covered]
    if missing:
        shown = ', '.join(missing[:8]) + (', ...' if len(missing) > 8 else '')
        text += f'; without a prototype: {shown}'
    present = [(count, name) for count, name in zip(coverage.anchors, names, strict=True) if count]
    if present:
        low, high = min(present), max(present)
        text += f'; fewest {low[0]} ({low[1]}), most {high[0]} ({high[1]})'
    follows = '' if bank.diagnosis is None else f' {bank.diagnosis.describe()}'
    return printable(f'{text}.{follows}')


def _known(value: float) -> float | None:
    """Replaces NaN, which JSON does not have, by None: an absent class has no IoU."""
    return None if math.isnan(value) else value


def _gain(host: float, tpa: float) -> float | None:
    """Returns the difference of the rounded scores, so that the printed columns add up."""
    return _known(round(tpa - host, 2))
