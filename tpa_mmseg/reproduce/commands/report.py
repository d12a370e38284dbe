"""``report``: what came out, beside what the paper prints."""

from __future__ import annotations

import argparse

from ..report import write_report


def main(args: argparse.Namespace) -> None:
    page, *others = write_report(args.out, args.work_dir, args.suite, args.tolerance)
    print(f'{page} and {len(others)} more files in {page.parent} (Markdown, CSV, LaTeX, SVG).')
