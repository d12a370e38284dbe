"""Tables and progress, on a terminal and in a log file."""

from __future__ import annotations

import logging
import re
import sys
import unicodedata

import pytest

from tpa_mmseg.console import ProgressBar, print_table, render, signed, track


def use_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the captured stdout and stderr look like a terminal of 80 columns."""
    monkeypatch.setenv('TERM', 'xterm-256color')
    monkeypatch.setenv('COLUMNS', '80')
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, 'isatty', lambda: True, raising=False)


def width(line: str) -> int:
    """Columns of a terminal: East Asian characters and emoji take two, combining marks none."""
    sizes = {'W': 2, 'F': 2}
    return sum(0 if unicodedata.combining(c) else sizes.get(unicodedata.east_asian_width(c), 1) for c in line)


def test_numbers_go_right_and_text_goes_left():
    assert render(['Class', 'IoU', 'Pixels'], [['cat', 7.5, 1234567], ['dog', None, 12]]) == '\n'.join(
        [
            '+-------+------+-----------+',
            '| Class |  IoU |    Pixels |',
            '+-------+------+-----------+',
            '| cat   | 7.50 | 1,234,567 |',
            '| dog   |    - |        12 |',
            '+-------+------+-----------+',
        ]
    )


def test_markdown_table_escapes_bars_and_marks_the_alignment():
    assert render(['a|b', 'n'], [['x', 1.0]], markdown=True) == '\n'.join(
        [
            '| a\\|b |    n |',
            '|------|-----:|',
            '| x    | 1.00 |',
        ]
    )


@pytest.mark.parametrize('name', ['汽车', '自転車', 'Straße', 'e\u0301', 'two\nlines', 'tab\tbed', '👍', '[red]x[/]'])
def test_every_line_has_the_same_width_on_a_terminal(name):
    lines = render(['Class', 'IoU'], [[name, 1.0], ['plain', 2.0]]).splitlines()
    assert len(lines) == 6
    assert len({width(line) for line in lines}) == 1


def test_table_without_rows_still_has_its_header():
    assert '| Class |' in render(['Class'], [])


def test_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match='2 columns'):
        render(['a', 'b'], [[1]])


def test_log_file_gets_no_color_and_nothing_is_cut(capsys):
    print_table(['Name', 'Gain'], [['x' * 500, signed(1.0)]])
    out = capsys.readouterr().out
    assert 'x' * 500 in out and '+1.00' in out and '\x1b' not in out


def test_terminal_gets_color_and_long_cells_are_folded(capsys, monkeypatch):
    use_terminal(monkeypatch)
    print_table(['Name', 'Gain'], [['x' * 500, signed(1.0)], ['y', signed(-1.0)], ['z', signed(None)]])
    out = capsys.readouterr().out
    assert out.count('x') == 500
    assert '\x1b[32m+1.00' in out and '\x1b[31m-1.00' in out
    assert max(width(line) for line in re.sub(r'\x1b\[[\d;]*m', '', out).splitlines()) <= 80


def test_log_file_gets_one_line_for_a_short_task(capsys):
    assert list(track('abc', 'Reading', unit='files')) == ['a', 'b', 'c']
    assert re.fullmatch(r'Reading: 3 of 3 files, [\d.]+ files/s, 0:00:00 elapsed\n', capsys.readouterr().err)


def test_log_file_gets_a_line_per_interval(capsys):
    with ProgressBar('Reading', 1234, 'files', interval=0) as bar:
        bar.advance(1000)
        bar.note = '1 failed'
        bar.advance(234)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith('Reading: 1,000 of 1,234 files, ') and first.endswith(' remaining')
    assert last.startswith('Reading: 1,234 of 1,234 files, ') and last.endswith(' elapsed, 1 failed')


def test_slow_task_shows_the_seconds_of_an_item(capsys, monkeypatch):
    times = iter([0.0, 8.0, 8.0, 8.0])
    monkeypatch.setattr('tpa_mmseg.console.time.monotonic', lambda: next(times))
    with ProgressBar('Reading', 3, interval=1) as bar:
        bar.advance(2)
        bar.done = 3
        monkeypatch.undo()
    assert 'Reading: 2 of 3 images, 4.0 s/image, 0:00:08 elapsed, 0:00:04 remaining\n' in capsys.readouterr().err


@pytest.mark.parametrize('options', [{'show': False}, {'transient': True}])
def test_log_file_gets_nothing_from_a_short_task_that_leaves_nothing(capsys, options):
    assert list(track(iter('abc'), 'Reading', **options)) == ['a', 'b', 'c']
    assert list(track([], 'Reading')) == []
    assert capsys.readouterr().err == ''


def test_failed_task_leaves_no_last_line(capsys):
    with pytest.raises(ZeroDivisionError), ProgressBar('Reading', 3) as bar:
        bar.advance(1 // 0)
    assert capsys.readouterr().err == ''


def test_terminal_gets_a_bar_of_one_line(capsys, monkeypatch):
    use_terminal(monkeypatch)
    assert list(track(range(3), 'Reading a file with a rather long name.mp4', unit='frames')) == [0, 1, 2]
    err = capsys.readouterr().err
    assert '100%' in err and '3/3' in err and 'elapsed\n' in err
    assert err.endswith('\n\x1b[?25h') and err.count('\n') == 1


def test_lines_of_a_logger_appear_above_the_bar(capsys, monkeypatch):
    use_terminal(monkeypatch)
    logger = logging.Logger('test')
    handler = logging.StreamHandler(sys.stderr)
    logger.addHandler(handler)
    with ProgressBar('Reading', 2, logger=logger) as bar:
        bar.advance()
        logger.warning('careful')
        bar.advance()
    assert handler.stream is sys.stderr
    assert re.search(r'\x1b\[2Kcareful\n', capsys.readouterr().err)


def test_output_for_a_pipe_does_not_go_to_the_terminal(capsys, monkeypatch):
    use_terminal(monkeypatch)
    monkeypatch.setattr(sys.stdout, 'isatty', lambda: False, raising=False)
    for _ in track(range(2), 'Reading'):
        print('a result')
    assert capsys.readouterr().out == 'a result\n' * 2
