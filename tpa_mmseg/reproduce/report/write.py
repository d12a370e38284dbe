"""Writes a report in all its formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...io import atomic_write
from ..folders import WORK_DIR
from ..reference import TOLERANCE
from .build import build_report
from .document import Report
from .latex import latex_text
from .markdown import markdown_text
from .page import page_text
from .spreadsheet import csv_text


def write_report(
    out: Path | None = None,
    work_dir: Path = WORK_DIR,
    suites: Sequence[str] | None = None,
    tolerance: float = TOLERANCE,
) -> list[Path]:
    """Writes ``report.html``, ``report.md``, ``tables/<suite>/*.csv|tex`` and ``figures/<suite>/*.svg``.

    Args:
        out: Folder to write to; by default ``report`` in the folder of runs.
        work_dir: Where the runs are.
        suites: Names of suites; by default the paper's, and every other in which something was started.
        tolerance: How far a number may be from the paper's, in points of mIoU, without being marked.

    Returns:
        The files, the page first.
    """
    out = Path(work_dir) / 'report' if out is None else Path(out)
    report = build_report(Path(work_dir), suites, tolerance)
    written = []
    for name, text in _files(report, out):
        with atomic_write(out / name, 'w') as file:
            file.write(text)
        written.append(out / name)
    return written


def _files(report: Report, out: Path) -> Iterator[tuple[str, str]]:
    """Name and content of every file."""
    yield 'report.html', page_text(report)
    yield 'report.md', markdown_text(report, out)
    for part in report.parts:
        for section in part.sections:
            for table in section.tables:
                if table.latex:
                    yield f'tables/{part.suite}/{table.name}.tex', latex_text(table, part.badge, report.tolerance)
                if table.csv:
                    yield f'tables/{part.suite}/{table.name}.csv', csv_text(table, part.suite)
            for figure in section.figures:
                yield f'figures/{part.suite}/{figure.name}.svg', figure.plot.svg_file()
