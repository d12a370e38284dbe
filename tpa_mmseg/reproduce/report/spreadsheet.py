"""Tables as CSV, for further work: one number per column, nothing rounded, nothing where nothing was measured."""

from __future__ import annotations

import csv
import io

from .document import Table


def csv_text(table: Table, suite: str) -> str:
    """The table, with the suite that its numbers are of in the first column."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator='\n')
    writer.writerow(['Suite', *table.columns])
    for row in table.rows:
        writer.writerow([suite, *('' if cell.value is None else cell.value for cell in row)])
    return out.getvalue()
