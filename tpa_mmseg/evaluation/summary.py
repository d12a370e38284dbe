"""The final tables: scores of host and TPA, per class and over all classes."""

from __future__ import annotations

from ..console import render, signed
from .counts import SCORES


def summary(report: dict) -> str:
    """Returns both tables as text. The totals come last because readers of a log look at its end.

    Args:
        report: From :class:`HostTPAMetric`; ``per_class`` may also hold the ``anchors`` of each class, and ``caveats``
            why the gain says little.
    """
    notes = [f'(!) {text}' for text in report.get('caveats') or ()]
    return '\n'.join([_class_table(report), '', _score_table(report), *notes])


def _class_table(report: dict) -> str:
    with_tpa, with_anchors = 'tpa' in report, any('anchors' in entry for entry in report['per_class'])
    columns = ['Class', *(['Host IoU', 'TPA IoU', 'Gain'] if with_tpa else ['IoU']), 'Support']
    columns += ['Anchors'] if with_anchors else []
    rows = []
    for entry in report['per_class']:
        gains = [entry['tpa_iou'], signed(entry['gain'])] if with_tpa else []
        anchors = [entry.get('anchors')] if with_anchors else []
        rows.append([entry['name'], entry['host_iou'], *gains, entry['support'], *anchors])
    return render(columns, rows, align='l' + 'r' * (len(columns) - 1))


def _score_table(report: dict) -> str:
    rows = [['Host', *(report['host'][score] for score in SCORES)]]
    if 'tpa' in report:
        rows.append(['TPA', *(report['tpa'][score] for score in SCORES)])
        mark = ' (!)' if report.get('caveats') else ''
        rows.append([f'Gain{mark}', *(signed(report['gain'][score]) for score in SCORES)])
    return render(['', *SCORES], rows, align='lrrr')
