"""Scores of host and TPA, and the tables that show them."""

from .counts import SCORES, ClassCounts, ClassScores
from .metric import HostTPAMetric
from .report import describe_bank, report_of, with_bank
from .summary import summary
