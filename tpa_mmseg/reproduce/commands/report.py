"""``report``: what came out, beside what the paper prints."""

from __future__ import annotations

import argparse

from ..report import write_report
from . import source_of


def main(args: argparse.Namespace) -> None:
    page, *others = write_report(source_of(args), args.out, args.suite, args.tolerance, args.figures)
    print(f'{page} and {len(others)} more files in {page.parent} (Markdown, CSV, LaTeX, figures).')
