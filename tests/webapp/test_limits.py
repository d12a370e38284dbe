"""Uploads and class names: sizes, formats, names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.helpers.tiny_segmenter import painted
from tpa_mmseg.errors import TPAError
from tpa_mmseg.webapp.limits import Limits, read_classes, read_upload, shown_name


def upload(path: Path, pixels: np.ndarray | None = None, kind: str = 'PNG', **options) -> str:
    """Write an upload. Returns its path."""
    Image.fromarray(painted() if pixels is None else pixels).save(path, kind, **options)
    return str(path)


@pytest.mark.parametrize('kind', ['PNG', 'JPEG', 'WEBP', 'BMP', 'TIFF'])
def test_upload_becomes_an_image_in_memory(tmp_path: Path, kind: str) -> None:
    orange = np.full((40, 56, 3), (230, 120, 20), np.uint8)
    image = read_upload(upload(tmp_path / 'cat.png', orange, kind), Limits())
    assert image.path is None and image.name == 'cat.png'
    assert np.abs(np.asarray(image.resized((40, 56)), int) - orange).max() < 5


def test_image_is_turned_as_the_camera_was(tmp_path: Path) -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    image = read_upload(upload(tmp_path / 'a.jpg', painted(size=(40, 56)), 'JPEG', exif=turned), Limits())
    assert image.load()['img'].shape == (56, 40, 3)


def test_large_image_is_shrunk_and_keeps_its_shape(tmp_path: Path) -> None:
    path = upload(tmp_path / 'a.png', painted(size=(100, 200)))
    assert read_upload(path, Limits(kept_megapixels=0.005)).load()['img'].shape == (50, 100, 3)


@pytest.mark.parametrize(
    ('content', 'limits', 'says'),
    (
        (None, Limits(megabytes=0.001), 'larger than 0.001 MB'),
        (None, Limits(megapixels=0.001), 'pixels, the limit is 0.001 megapixels'),
        (b'\x89PNG\r\n\x1a\n cut off', Limits(), 'cannot be read'),
        (b'', Limits(), 'cannot be read'),
        (b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n', Limits(), 'cannot be read'),
        (b'GIF98a\x01\x00\x01\x00\x00\x00\x00;', Limits(), 'cannot be read'),
    ),
    ids=['bytes', 'pixels', 'damaged', 'empty', 'program', 'format'],
)
def test_upload_is_refused_in_a_sentence_that_names_it(
    tmp_path: Path, content: bytes | None, limits: Limits, says: str
) -> None:
    path = tmp_path / 'cat.png'
    path.write_bytes(content) if content is not None else upload(path)
    with pytest.raises(TPAError, match=says) as refused:
        read_upload(str(path), limits)
    assert str(refused.value).startswith('cat.png ')


def test_size_is_checked_before_pixels_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = upload(tmp_path / 'bomb.png', np.zeros((1000, 2000, 3), np.uint8))
    monkeypatch.setattr('PIL.ImageFile.ImageFile.load', lambda *_: pytest.fail('the pixels were decoded'))
    with pytest.raises(TPAError, match='2000 x 1000'):
        read_upload(path, Limits(megapixels=1))


def test_a_visitor_may_upload_forty_megapixels() -> None:
    assert Limits().megapixels == 40


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


def test_classes_are_read_by_the_grammar_of_the_project() -> None:
    names = read_classes('cat, dog\n\n tv; television ;\r\nwand\n;', Limits())
    assert str(names) == '4 classes: cat / dog / tv (= television) / wand'


@pytest.mark.parametrize(
    ('text', 'says'),
    (
        ('', 'No classes'),
        (' ; \n,', 'No classes'),
        ('a\nb\nc\nd', 'Too many names'),
        ('a, b, c, d', 'Too many names'),
        ('a; b; c; d', 'Too many names'),
        ('a' * 50 + '\nb', 'Too many names'),
    ),
)
def test_classes_are_refused_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(TPAError, match=says):
        read_classes(text, Limits(names=3, characters=40))
