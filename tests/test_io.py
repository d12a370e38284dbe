"""A file appears complete or not at all."""

from __future__ import annotations

import pytest
from PIL import Image

from tpa_mmseg.errors import TPAError, user_message
from tpa_mmseg.io import atomic_write, parse_json, write_json, write_png


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / 'new' / 'file.txt'
    with atomic_write(path, 'w') as file:
        file.write('äh')
        assert not path.exists()
    assert path.read_text(encoding='utf-8') == 'äh'
    assert [entry.name for entry in path.parent.iterdir()] == ['file.txt']


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / 'file.bin'
    path.write_bytes(b'old')
    with pytest.raises(ZeroDivisionError), atomic_write(path) as file:
        file.write(b'new')
        raise ZeroDivisionError
    assert path.read_bytes() == b'old'
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / 'folder').mkdir()
    with pytest.raises(TPAError, match='Cannot write .*folder'), atomic_write(tmp_path / 'folder') as file:
        file.write(b'x')


def test_the_sentence_is_found_inside_a_workers_traceback():
    text = 'Caught TPAError in worker process 0.\nOriginal Traceback ...\ntpa_mmseg.errors.TPAError: One thing.\n'
    assert user_message(TPAError(text)) == 'One thing.'
    assert user_message(ValueError('x')) == 'ValueError: x'


def test_json_is_readable_and_holds_no_nan(tmp_path):
    write_json(tmp_path / 'a' / 'file.json', {'name': '汽车', 'none': None})
    text = (tmp_path / 'a' / 'file.json').read_text(encoding='utf-8')
    assert text == '{\n  "name": "汽车",\n  "none": null\n}\n'
    with pytest.raises(ValueError, match='JSON'):
        write_json(tmp_path / 'nan.json', {'iou': float('nan')})
    assert not (tmp_path / 'nan.json').exists()


def test_png_appears_when_it_is_complete(tmp_path):
    write_png(tmp_path / 'a' / 'file.png', Image.new('RGB', (3, 2), (1, 2, 3)))
    with Image.open(tmp_path / 'a' / 'file.png') as image:
        assert image.size == (3, 2) and image.getpixel((0, 0)) == (1, 2, 3)


def test_json_of_strangers_is_parsed_and_reduced():
    assert parse_json('{"a": [1, {"b": null}]}') == {'a': [1, {'b': None}]}
    assert parse_json(b'{"a": [1, {"b": null}]}', lambda item: item if 'a' in item else len(item)) == {'a': [1, 1]}


@pytest.mark.parametrize(
    'text', ['', '{', '[' * 200_000, '{"a": 1, "a": 2}', '[NaN]', '[-Infinity]', '9' * 5000, b'\xff\xfe\x00']
)
def test_odd_json_is_a_value_error(text):
    with pytest.raises(ValueError):
        parse_json(text)


def test_the_sentence_of_every_error_of_ours_is_found():
    text = 'Caught UnreadableImage in worker process 0.\n ...\ntpa_mmseg.images.UnreadableImage: Cannot decode a.jpg.\n'
    assert user_message(TPAError(text)) == 'Cannot decode a.jpg.'
