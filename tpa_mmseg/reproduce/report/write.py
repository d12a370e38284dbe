"""Writes a report: one page, Markdown, and every table and figure as files for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

import jinja2
import vl_convert
from markupsafe import Markup

from ...io import atomic_write
from ...version import __version__
from ..frames import TOLERANCE
from ..sources import Source
from .build import Part, build_report
from .tables import markdown
from .words import WORDS

FIGURE_FORMATS = ('svg', 'png', 'pdf')
_HERE = Path(__file__).parent
_LATEX_HEAD = '% \\usepackage{booktabs}. Ours (the paper); an arrow marks what is beyond the tolerance.\n'


def write_report(
    source: Source,
    out: Path | None = None,
    suites: Sequence[str] | None = None,
    tolerance: float = TOLERANCE,
    formats: Sequence[str] = FIGURE_FORMATS,
    classes: Sequence[str] = (),
) -> list[Path]:
    """Writes ``report.html``, ``report.md``, ``tables/<suite>/*.csv|tex`` and ``figures/<suite>/*.svg|png|pdf``.

    Args:
        source: Where the results are.
        out: Folder to write to; by default ``report`` beside the results.
        suites: Names of suites; by default the paper's, and every other in which something was started.
        tolerance: How far a number may be from the paper's, in points of mIoU, without being marked.
        formats: Of the figures' files.
        classes: Runs of the main table whose classes are shown; by default those of the catalog.

    Returns:
        The files, the page first.
    """
    out = source.folder / 'report' if out is None else Path(out)
    parts = build_report(source, suites, tolerance, classes)
    written = []
    for name, content in _files(parts, formats):
        with atomic_write(out / name) as file:
            file.write(content.encode() if isinstance(content, str) else content)
        written.append(out / name)
    return written


def _files(parts: Sequence[Part], formats: Sequence[str]) -> Iterator[tuple[str, str | bytes]]:
    """Name and content of every file."""
    made = f'Made by tpa_mmseg {__version__} on {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC'
    for name in ('report.html', 'report.md'):
        yield name, _template(name).render(parts=parts, made=made, verdicts=WORDS['verdicts'], asset=_asset, vega=_vega)
    for part in parts:
        for section in part.sections:
            for table in section.tables:
                suffix, text = ('csv', table.to_csv()) if table.numbers else ('tex', _LATEX_HEAD + table.to_latex())
                yield f'tables/{part.suite}/{table.name}.{suffix}', text
            for figure in section.figures:
                spec = figure.chart.to_dict()
                for suffix in formats:
                    draw = getattr(vl_convert, f'vegalite_to_{suffix}')
                    drawn = draw(spec, scale=2) if suffix == 'png' else draw(spec)
                    yield f'figures/{part.suite}/{figure.name}.{suffix}', drawn


def _template(name: str) -> jinja2.Template:
    """A template. What a page shows, style, scripts and pictures, is inside it."""
    loader, escapes = jinja2.FileSystemLoader(_HERE), jinja2.select_autoescape()
    environment = jinja2.Environment(loader=loader, autoescape=escapes, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {'markup': Markup, 'md': markdown}
    return environment.get_template(name)


def _asset(name: str) -> Markup:
    return Markup((_HERE / name).read_text(encoding='utf-8'))


@cache
def _vega() -> Markup:
    """Vega and what it needs, as one script that ends where its tag does."""
    return Markup(vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;').replace('</script', r'<\/script'))
