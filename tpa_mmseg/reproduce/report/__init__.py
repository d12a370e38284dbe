"""The report: what came out of the experiments beside what the paper prints, as one page and as files for a paper."""

from .write import write_report
