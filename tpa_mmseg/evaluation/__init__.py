"""Scores of host and TPA, and the tables that show them."""

from .metric import HostTPAMetric
from .summary import class_table, score_table, summary
from .table import render

__all__ = ['HostTPAMetric', 'class_table', 'render', 'score_table', 'summary']
