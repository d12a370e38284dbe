"""Scores of host and TPA, and the tables that show them."""

from .metric import HostTPAMetric
from .summary import summary

__all__ = ['HostTPAMetric', 'summary']
