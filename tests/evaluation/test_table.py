from __future__ import annotations

import pytest
from wcwidth import wcswidth

from tpa_mmseg.evaluation import render


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


@pytest.mark.parametrize('name', ['汽车', '自転車', 'Straße', 'e\u0301', 'two\nlines', 'tab\tbed', '👍'])
def test_every_line_has_the_same_width_on_a_terminal(name):
    lines = render(['Class', 'IoU'], [[name, 1.0], ['plain', 2.0]]).splitlines()
    assert len(lines) == 6
    assert len({wcswidth(line) for line in lines}) == 1


def test_table_without_rows_still_has_its_header():
    assert '| Class |' in render(['Class'], [])


def test_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match='2 columns'):
        render(['a', 'b'], [[1]])
