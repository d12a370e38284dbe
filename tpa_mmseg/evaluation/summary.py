"""The final tables: what host and TPA scored, per class and over all."""

from __future__ import annotations

from .counts import SCORES
from .table import render


def class_table(report: dict, markdown: bool = False) -> str:
    """The IoU of every class, what TPA gained, and how much there was of the class.

    Args:
        report: As :class:`HostTPAMetric` makes it; ``per_class`` may also hold the ``anchors`` of each class.
        markdown: Draw it in Markdown.
    """
    with_tpa, with_anchors = 'tpa' in report, any('anchors' in entry for entry in report['per_class'])
    columns = ['Class', *(['Host IoU', 'TPA IoU', 'Gain'] if with_tpa else ['IoU']), 'Support']
    rows = []
    for entry in report['per_class']:
        scores = [entry['host_iou']]
        if with_tpa:
            scores += [entry['tpa_iou'], signed(entry['gain'])]
        rows.append([entry['name'], *scores, entry['support'], *([entry.get('anchors')] if with_anchors else [])])
    columns += ['Anchors'] if with_anchors else []
    return render(columns, rows, align='l' + 'r' * (len(columns) - 1), markdown=markdown)


def score_table(report: dict, markdown: bool = False) -> str:
    """aAcc, mIoU and mAcc of the host, of TPA, and their difference."""
    rows = [['Host', *(report['host'][score] for score in SCORES)]]
    if 'tpa' in report:
        rows.append(['TPA', *(report['tpa'][score] for score in SCORES)])
        rows.append(['Gain', *(signed(report['gain'][score]) for score in SCORES)])
    return render(['', *SCORES], rows, align='lrrr', markdown=markdown)


def summary(report: dict, markdown: bool = False) -> str:
    """Both tables, the totals last because that is where a reader of a log looks."""
    return f'{class_table(report, markdown)}\n\n{score_table(report, markdown)}'


def signed(value: float | None) -> str | None:
    """A difference with its sign."""
    return None if value is None else f'{value:+.2f}'
