"""Scores of host and TPA, and the tables that show them."""

from .counts import SCORES, ClassCounts, ClassScores
from .metric import HostTPAMetric
from .report import describe_bank, report_of, with_bank
from .summary import class_table, score_table, summary
from .table import render

__all__ = [
    'SCORES',
    'ClassCounts',
    'ClassScores',
    'HostTPAMetric',
    'class_table',
    'describe_bank',
    'render',
    'report_of',
    'score_table',
    'summary',
    'with_bank',
]
