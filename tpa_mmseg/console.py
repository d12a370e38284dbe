"""Tables and progress on the terminal and in log files, by rich."""

from __future__ import annotations

import io
import logging
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
from rich.table import Column, Table
from rich.text import Text

from .errors import printable

T = TypeVar('T')

# Wider than any table: nothing is wrapped or truncated in a log file.
_WIDE = 100_000


def render(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], align: str | None = None, markdown: bool = False
) -> str:
    """Returns a table as plain text for log files, or as Markdown.

    Args:
        columns: The column titles.
        rows: The cells. Floats get two decimals, integers thousands separators, None is a dash.
        align: One letter per column, ``'l'`` or ``'r'``. Default: right for columns that hold only numbers.
        markdown: Whether to use Markdown's syntax.

    Returns:
        The lines of the table without a final newline.
    """
    sides = align or _sides(columns, rows)
    console = Console(file=io.StringIO(), width=_WIDE, color_system=None)
    console.print(_table(columns, rows, sides, box.MARKDOWN if markdown else box.ASCII2))
    lines = [line for line in console.file.getvalue().splitlines() if line.strip()]
    if markdown:
        marks = zip(lines[1].strip('|').split('|'), sides, strict=True)
        lines[1] = f'|{"|".join(dashes[:-1] + (":" if side == "r" else "-") for dashes, side in marks)}|'
    return '\n'.join(lines)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], align: str | None = None) -> None:
    """Prints a table to stdout: in color on a terminal, otherwise as :func:`render` returns it. Args: as there."""
    if sys.stdout.isatty():
        Console().print(_table(columns, rows, align or _sides(columns, rows), box.ROUNDED))
    else:
        print(render(columns, rows, align))


@contextmanager
def printable_logs() -> Iterator[None]:
    """Makes printable what the whole process logs and warns of."""
    record, warning = logging.getLogRecordFactory(), warnings.formatwarning
    logging.setLogRecordFactory(_PrintableRecord)
    warnings.formatwarning = lambda *args, **kwargs: printable(warning(*args, **kwargs))
    try:
        yield
    finally:
        logging.setLogRecordFactory(record)
        warnings.formatwarning = warning


class _PrintableRecord(logging.LogRecord):
    def getMessage(self) -> str:  # noqa: N802
        return printable(super().getMessage())


def signed(value: float | None) -> str | None:
    """Returns a gain with its sign, as a cell of a table."""
    return None if value is None else f'{value:+.2f}'


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]], sides: str, lines: box.Box) -> Table:
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f'every row of a table with {len(columns)} columns needs {len(columns)} cells')
    table = Table(box=lines, header_style='bold')
    for title, side in zip(columns, sides, strict=True):
        table.add_column(_text(title, lines), justify='right' if side == 'r' else 'left', overflow='fold')
    for row in rows:
        table.add_row(*(_text(cell, lines) for cell in row))
    return table


def _sides(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    numbers = (
        all(cell is None or isinstance(cell, (int, float)) for cell in cells) for cells in zip(*rows, strict=False)
    )
    return ''.join('r' if only else 'l' for only in numbers).ljust(len(columns), 'l')


def _text(cell: Any, lines: box.Box) -> Text:
    """One line of text that cannot break the grid. Gains are green, losses red."""
    if cell is None:
        return Text('-')
    if isinstance(cell, float):
        return Text(f'{cell:.2f}')
    if isinstance(cell, int) and not isinstance(cell, bool):
        return Text(f'{cell:,}')
    text = printable(' '.join(str(cell).split()))
    sign = re.match(r'[+-](?=\d)', text)
    style = '' if sign is None else 'green' if sign[0] == '+' else 'red'
    return Text(text.replace('|', '\\|') if lines is box.MARKDOWN else text, style)


class ProgressBar:
    """Shows how far a long task is: a bar if stderr is a terminal, otherwise a line now and then.

    Use it in a ``with`` statement, or call :meth:`start` and :meth:`stop`. On a terminal, what is printed meanwhile
    appears above the bar.

    Args:
        description: Name of the task.
        total: Number of items, None if it is unknown.
        unit: What the items are, in the plural.
        interval: Seconds between two lines if stderr is not a terminal.
        transient: Whether the bar disappears at the end; then there is no last line either.
        logger: A logger whose lines are to appear above the bar.

    Attributes:
        done: Number of items that are done.
        note: Shown behind the figures.
    """

    def __init__(
        self,
        description: str,
        total: int | None = None,
        unit: str = 'images',
        interval: float = 30.0,
        transient: bool = False,
        logger: logging.Logger | None = None,
    ) -> None:
        self.description, self.total, self.unit = printable(description), total, unit
        self.done, self.note = 0, ''
        self._interval, self._transient = interval, transient
        self._handlers = [handler for handler in logger.handlers if _on_terminal(handler)] if logger else []
        self._bar: Progress | None = None
        console = Console(stderr=True)
        if sys.stderr.isatty() and not console.is_dumb_terminal:
            self._bar = Progress(
                TextColumn('{task.description}', markup=False, table_column=Column(no_wrap=True, max_width=24)),
                BarColumn(bar_width=None),
                TaskProgressColumn(),
                _Figures(self),
                console=console,
                transient=transient,
                expand=True,
                # What is printed to a file or a pipe must not go to the terminal instead.
                redirect_stdout=sys.stdout.isatty(),
            )

    def start(self) -> ProgressBar:
        """Shows the bar."""
        self._started = self._last_line = time.monotonic()
        self._first, self._printed = self.done, None
        if self._bar is not None:
            self._task = self._bar.add_task(self.description, total=self.total, completed=self.done)
            self._bar.start()
            self._streams = [handler.setStream(sys.stderr) for handler in self._handlers]
        return self

    def stop(self, finished: bool = True) -> None:
        """Leaves the bar or a last line behind, but nothing that would follow an error message."""
        if self._bar is not None:
            for handler, stream in zip(self._handlers, self._streams, strict=True):
                handler.setStream(stream)
            self._bar.live.transient |= not finished
            self._bar.stop()
        elif finished and not self._transient and self._printed != self.done:
            self._print_line()

    def __enter__(self) -> ProgressBar:
        return self.start()

    def __exit__(self, kind: type | None, *_: object) -> None:
        self.stop(finished=kind is None)

    def advance(self, count: int = 1) -> None:
        """Counts items as done."""
        self.done += count
        self.refresh()

    def refresh(self) -> None:
        """Shows the current values of the attributes."""
        if self._bar is not None:
            self._bar.update(self._task, description=self.description, completed=self.done, total=self.total)
        elif time.monotonic() - self._last_line >= self._interval:
            self._print_line()

    def times(self) -> tuple[str, str, str]:
        """Returns the speed, the time elapsed and the time remaining; empty if unknown."""
        elapsed = time.monotonic() - self._started
        speed = (self.done - self._first) / max(elapsed, 1e-9)
        if not speed:
            return '', f'{_clock(elapsed)} elapsed', ''
        rate = f'{speed:.1f} {self.unit}/s' if speed >= 1 else f'{1 / speed:.1f} s/{self.unit.removesuffix("s")}'
        left = 0 if self.total is None else self.total - self.done
        return rate, f'{_clock(elapsed)} elapsed', f'{_clock(left / speed)} remaining' if left > 0 else ''

    def _print_line(self) -> None:
        self._last_line, self._printed = time.monotonic(), self.done
        total = '' if self.total is None else f' of {self.total:,}'
        parts = [f'{self.description}: {self.done:,}{total} {self.unit}', *self.times(), self.note]
        print(printable(', '.join(filter(None, parts))), file=sys.stderr, flush=True)


class _Figures(ProgressColumn):
    """Number of items, speed, and the time that is left, or in the end that it took."""

    def __init__(self, owner: ProgressBar) -> None:
        super().__init__(Column(no_wrap=True))
        self._owner = owner

    def render(self, task: Task) -> Text:
        owner = self._owner
        total = '' if owner.total is None else f'/{owner.total:,}'
        rate, elapsed, remaining = owner.times()
        parts = [f'{owner.done:,}{total}', rate, remaining or elapsed, owner.note]
        return Text(printable(', '.join(filter(None, parts))))


def track(
    items: Iterable[T],
    description: str,
    total: int | None = None,
    unit: str = 'images',
    transient: bool = False,
    show: bool = True,
) -> Iterator[T]:
    """Yields the items and shows the progress.

    Args:
        items: What to iterate over.
        description, total, unit, transient: As in :class:`ProgressBar`. Default of ``total``: the length of ``items``.
        show: Whether to show the progress at all.
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    # A data loader forks its workers here: they must not inherit a bar that is being drawn.
    iterator = iter(items)
    if not show or total == 0:
        yield from iterator
        return
    with ProgressBar(description, total, unit, transient=transient) as bar:
        for item in iterator:
            yield item
            bar.advance()


def _on_terminal(handler: logging.Handler) -> bool:
    return isinstance(handler, logging.StreamHandler) and handler.stream.isatty()


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
