"""What comes from outside: sizes, formats, names, words."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tests.helpers.tiny_segmenter import painted
from tpa_mmseg.errors import TPAError
from tpa_mmseg.webapp.limits import Limits, read_upload, read_words, shown_name


def encoded(pixels: np.ndarray, kind: str = 'PNG', **options) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize('kind', ['PNG', 'JPEG', 'WEBP', 'BMP', 'TIFF'])
def test_upload_becomes_a_picture_in_memory(kind: str) -> None:
    orange = np.full((40, 56, 3), (230, 120, 20), np.uint8)
    picture = read_upload(encoded(orange, kind), 'cat.png', Limits())
    assert picture.path is None and picture.name == 'cat.png'
    assert np.abs(np.asarray(picture.at((40, 56)), int) - orange).max() < 5


def test_picture_lies_as_the_camera_was_held() -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    picture = read_upload(encoded(painted(size=(40, 56)), 'JPEG', exif=turned), 'a.jpg', Limits())
    assert picture.load()['img'].shape == (56, 40, 3)


def test_large_picture_is_shrunk_and_keeps_its_shape() -> None:
    picture = read_upload(encoded(painted(size=(100, 200))), 'a.png', Limits(kept_megapixels=0.005))
    assert picture.load()['img'].shape == (50, 100, 3)


@pytest.mark.parametrize(
    ('content', 'limits', 'says'),
    (
        (encoded(painted()), Limits(megabytes=0.001), 'larger than 0.001 MB'),
        (encoded(painted(size=(100, 200))), Limits(megapixels=0.01), '200 x 100 pixels'),
        (encoded(painted())[:200], Limits(), 'cannot be read'),
        (b'', Limits(), 'cannot be read'),
        (b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n', Limits(), 'cannot be read'),
        (encoded(painted(), 'GIF'), Limits(), 'cannot be read'),
    ),
    ids=['bytes', 'pixels', 'damaged', 'empty', 'program', 'format'],
)
def test_upload_is_refused_in_a_sentence_that_names_it(content: bytes, limits: Limits, says: str) -> None:
    with pytest.raises(TPAError, match=says) as refused:
        read_upload(content, '../photos/cat.png', limits)
    assert str(refused.value).startswith('cat.png ')


def test_size_is_checked_before_pixels_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def decoded(*_) -> None:
        pytest.fail('the pixels were decoded')

    content = encoded(np.zeros((1000, 2000, 3), np.uint8))
    monkeypatch.setattr('PIL.ImageFile.ImageFile.load', decoded)
    with pytest.raises(TPAError, match='2000 x 1000'):
        read_upload(content, 'bomb.png', Limits(megapixels=1))


@pytest.mark.parametrize(
    ('name', 'shown'),
    (
        ('../../etc/passwd', 'passwd'),
        ('C:\\pictures\\cat.png', 'cat.png'),
        ('a\x00b\n.png', 'ab.png'),
        ('\u202egnp.cat', 'gnp.cat'),
        ('猫.png', '猫.png'),
        ('..', '..'),
        ('', 'picture'),
        ('x' * 500, 'x' * 60),
    ),
)
def test_names_are_for_showing_only(name: str, shown: str) -> None:
    assert shown_name(name) == shown


def test_lines_and_commas_separate_classes_and_semicolons_synonyms() -> None:
    assert read_words('cat, dog\n\n tv; television ;\r\nwand\n', False, Limits()) == [
        'cat',
        'dog',
        'tv; television',
        'wand',
    ]


@pytest.mark.parametrize(
    ('text', 'background', 'says'),
    (
        ('', True, 'no classes'),
        (' ; \n,', True, 'no classes'),
        ('cat', False, 'only class'),
        ('cat; dog', False, 'only class'),
        ('a\nb\nc\nd', False, 'too many'),
        ('a, b, c, d', False, 'too many'),
        ('a' * 50 + '\nb', False, 'too many'),
    ),
)
def test_words_are_refused_in_a_sentence(text: str, background: bool, says: str) -> None:
    with pytest.raises(TPAError, match=says):
        read_words(text, background, Limits(classes=3, characters=40))


def test_one_class_before_a_background_is_enough() -> None:
    assert read_words('cat', True, Limits()) == ['cat']
