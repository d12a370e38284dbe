"""Uploads and class names: sizes, formats, names."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tests.helpers.tiny_segmenter import painted
from tpa_mmseg.errors import TPAError
from tpa_mmseg.webapp.limits import Limits, read_classes, read_upload, shown_name


def encoded(pixels: np.ndarray, kind: str = 'PNG', **options) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize('kind', ['PNG', 'JPEG', 'WEBP', 'BMP', 'TIFF'])
def test_upload_becomes_an_image_in_memory(kind: str) -> None:
    orange = np.full((40, 56, 3), (230, 120, 20), np.uint8)
    image = read_upload(encoded(orange, kind), 'cat.png', Limits())
    assert image.path is None and image.name == 'cat.png'
    assert np.abs(np.asarray(image.resized((40, 56)), int) - orange).max() < 5


def test_image_is_turned_as_the_camera_was() -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    image = read_upload(encoded(painted(size=(40, 56)), 'JPEG', exif=turned), 'a.jpg', Limits())
    assert image.load()['img'].shape == (56, 40, 3)


def test_large_image_is_shrunk_and_keeps_its_shape() -> None:
    image = read_upload(encoded(painted(size=(100, 200))), 'a.png', Limits(kept_megapixels=0.005))
    assert image.load()['img'].shape == (50, 100, 3)


@pytest.mark.parametrize(
    ('content', 'limits', 'says'),
    (
        (encoded(painted()), Limits(megabytes=0.001), 'larger than 0.001 MB'),
        (encoded(painted(size=(100, 200))), Limits(megapixels=0.01), '200 x 100 pixels'),
        (encoded(painted())[:200], Limits(), 'cannot be read'),
        (b'', Limits(), 'cannot be read'),
        (b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n', Limits(), 'cannot be read'),
        (encoded(painted(), 'PCX'), Limits(), 'cannot be read'),
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
        ('', 'image'),
        ('x' * 500, 'x' * 60),
    ),
)
def test_names_are_for_showing_only(name: str, shown: str) -> None:
    assert shown_name(name) == shown


def test_lines_and_commas_separate_classes_and_semicolons_synonyms() -> None:
    assert read_classes('cat, dog\n\n tv; television ;\r\nwand\n', False, Limits()) == [
        'cat',
        'dog',
        'tv; television',
        'wand',
    ]


@pytest.mark.parametrize(
    ('text', 'background', 'says'),
    (
        ('', True, 'No classes'),
        (' ; \n,', True, 'No classes'),
        ('cat', False, 'Only one class'),
        ('cat; dog', False, 'Only one class'),
        ('a\nb\nc\nd', False, 'Too many'),
        ('a, b, c, d', False, 'Too many'),
        ('a' * 50 + '\nb', False, 'Too many'),
    ),
)
def test_classes_are_refused_in_a_sentence(text: str, background: bool, says: str) -> None:
    with pytest.raises(TPAError, match=says):
        read_classes(text, background, Limits(classes=3, characters=40))


def test_one_class_before_a_background_is_enough() -> None:
    assert read_classes('cat', True, Limits()) == ['cat']
