from __future__ import annotations

import pytest
from PIL import Image

from tpa_mmseg.visualization import Entry, Legend, Panel, compose
from tpa_mmseg.visualization.fonts import font_for, legible
from tpa_mmseg.visualization.layout import wrap


def drawn(names):
    panel = Panel('Title', Image.new('RGB', (400, 300)))
    return compose([panel], [Legend('Classes', [Entry((200, 0, 0), name) for name in names])])


def test_long_legend_wraps_and_keeps_the_width():
    few, many = drawn(['class'] * 3), drawn(['class'] * 150)
    assert few.width == many.width
    assert many.height > few.height + 300


def test_no_line_is_wider_than_allowed_and_no_entry_is_lost():
    entries = [Entry((0, 0, 0), 'x' * (index % 13 + 1)) for index in range(60)]
    lines = wrap(entries, 300, 16)
    assert [entry for line in lines for entry in line] == entries
    for line in lines:
        width = sum(22 + font_for(entry.text, 16).getlength(entry.text) for entry in line) + 16 * (len(line) - 1)
        assert width <= 302


def test_name_wider_than_a_line_is_shortened():
    ((entry,),) = wrap([Entry((0, 0, 0), 'x' * 500)], 300, 16)
    assert entry.text.endswith('…') and len(entry.text) < 60


@pytest.mark.parametrize('name', ['Straße', '汽车', 'العربية', 'человек', '👍', 'two\nlines', '', '\u0000', '\ud800'])
def test_any_name_can_be_drawn(name):
    assert drawn([name]).size == drawn(['plain']).size


def test_text_is_drawn_in_ink_and_swatches_in_their_color():
    picture = drawn(['plain'])
    colors = {color for _, color in picture.getcolors(1 << 24)}
    assert (200, 0, 0) in colors
    assert (25, 25, 25) in colors


def test_different_accented_letters_are_different_glyphs():
    font = font_for('éß', 20)
    assert bytes(font.getmask('é')) != bytes(font.getmask('ß'))


def test_legend_without_entries_can_be_drawn():
    assert drawn([]).width > 400


def test_characters_that_no_font_has_are_written_as_codes():
    assert legible('кошка, σκύλος, élevé') == 'кошка, σκύλος, élevé'
    private_use = '\U000f1234'
    assert legible(f'cat {private_use}{private_use}') == 'cat U+F1234 U+F1234'


def test_names_of_unknown_scripts_can_be_told_apart():
    first, second = drawn(['\U000f1234']), drawn(['\U000f1235'])
    assert first.tobytes() != second.tobytes()
