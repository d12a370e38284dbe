"""The report: what came out of the experiments beside what the paper prints, as HTML, Markdown, CSV and LaTeX."""

from .build import build_report
from .write import write_report
