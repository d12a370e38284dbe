from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

from tpa_mmseg.errors import TPAError
from tpa_mmseg.visualization import Legend, LegendEntry, Panel, compose
from tpa_mmseg.visualization.fonts import load_fonts
from tpa_mmseg.visualization.layout import wrap

OTHER_FONT = Path(matplotlib.get_data_path(), 'fonts', 'ttf', 'STIXGeneral.ttf')


def drawn(names, title='Title', **options):
    panel = Panel(title, Image.new('RGB', (400, 300)))
    return compose([panel], [Legend('Classes', [LegendEntry((200, 0, 0), name) for name in names])], **options)


def test_long_legend_wraps_and_keeps_the_width():
    few, many = drawn(['class'] * 3), drawn(['class'] * 150)
    assert few.width == many.width
    assert many.height > few.height + 300


def test_no_line_is_wider_than_allowed_and_no_entry_is_lost():
    entries = [LegendEntry((0, 0, 0), 'x' * (index % 13 + 1)) for index in range(60)]
    fonts = load_fonts(16)
    lines = wrap(entries, 300, fonts)
    assert [entry for line in lines for entry in line] == entries
    for line in lines:
        width = sum(22 + fonts.regular.getlength(entry.text) for entry in line) + 16 * (len(line) - 1)
        assert width <= 302


def test_name_wider_than_a_line_is_shortened():
    ((entry,),) = wrap([LegendEntry((0, 0, 0), 'x' * 500)], 300, load_fonts(16))
    assert entry.text.endswith('…') and len(entry.text) < 60


def test_nothing_is_drawn_over_the_edge():
    """Long titles and names leave a white margin on every side."""
    pixels = np.asarray(drawn(['x' * 500, 'a', 'y' * 80], title='A title that is far wider than its panel ' * 2))
    for edge in (pixels[:3], pixels[-3:], pixels[:, :3], pixels[:, -3:]):
        assert (edge == 255).all()


@pytest.mark.parametrize('name', ['Straße', '汽车', 'العربية', 'человек', '👍', 'two\nlines', '', '\u0000', '\ud800'])
@pytest.mark.filterwarnings('ignore:DejaVu Sans cannot draw')
def test_any_name_can_be_drawn(name):
    assert drawn([name]).size == drawn(['plain']).size


def test_text_is_drawn_in_ink_and_swatches_in_their_color():
    colors = {color for _, color in drawn(['plain']).getcolors(1 << 24)}
    assert (200, 0, 0) in colors
    assert (25, 25, 25) in colors


def test_different_accented_letters_are_different_glyphs():
    font = load_fonts(20, text='éß').regular
    assert bytes(font.getmask('é')) != bytes(font.getmask('ß'))


def test_legend_without_entries_can_be_drawn():
    assert drawn([]).width > 400


def test_characters_that_the_font_lacks_are_named_with_a_font_that_has_them():
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        drawn(['кошка, σκύλος, élevé'])
    with pytest.warns(UserWarning, match="DejaVu Sans cannot draw '汽车'.* Noto Sans CJK"):
        drawn(['a 汽车', '汽'])


def test_font_is_an_option_and_an_environment_variable(monkeypatch):
    default, chosen = drawn(['plain']), drawn(['plain'], font=OTHER_FONT)
    assert default.tobytes() != chosen.tobytes()
    monkeypatch.setenv('TPA_FONT', str(OTHER_FONT))
    assert drawn(['plain']).tobytes() == chosen.tobytes()


def test_missing_font_is_one_sentence():
    with pytest.raises(TPAError, match='Cannot load the font nowhere.ttf. Set font or TPA_FONT'):
        drawn(['plain'], font='nowhere.ttf')
