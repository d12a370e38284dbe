"""Scores of host and TPA, and the tables that show them."""

from .caveats import bank_caveats, unchanged_caveat
from .counts import SCORES, ClassCounts, ClassScores
from .metric import HostTPAMetric
from .report import describe_bank, report_of, with_bank
from .summary import summary
