"""Pictures from strangers: one list of formats, one limit on pixels, one message, wherever they are opened."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from mmengine.structures import BaseDataElement
from PIL import Image

from tests.helpers.world import ROOT
from tpa_mmseg.apis.images import ImageSource, list_images
from tpa_mmseg.datasets import LoadImage, LoadLabels
from tpa_mmseg.errors import TPAError
from tpa_mmseg.hosts.trident.original_image import read_original
from tpa_mmseg.images import FORMATS, UnreadableImage, open_image, shrink
from tpa_mmseg.prepare import labels
from tpa_mmseg.visualization import read_image
from tpa_mmseg.webapp.limits import Limits, read_upload

PIXELS = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)


def encoded(kind: str, pixels: np.ndarray = PIXELS, **options) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


def bomb(width: int = 30_000, height: int = 30_000) -> bytes:
    """A PNG of a few bytes whose header promises many pixels."""
    header = struct.pack('>IIBBBBB', width, height, 8, 0, 0, 0, 0)
    chunks = ((b'IHDR', header), (b'IDAT', zlib.compress(bytes(1000))), (b'IEND', b''))
    parts = (struct.pack('>I', len(c)) + kind + c + struct.pack('>I', zlib.crc32(kind + c)) for kind, c in chunks)
    return b'\x89PNG\r\n\x1a\n' + b''.join(parts)


HOSTILE = {
    'program': b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(x) run\n',
    'rare format': encoded('PCX'),
    'bomb': bomb(),
    'truncated': encoded('PNG')[:900],
    'truncated JPEG': encoded('JPEG')[:900],
    'broken header': encoded('TIFF')[:7] + bytes(200),
    'empty': b'',
}


def load_labels(path: Path) -> None:
    LoadLabels().transform(
        {'seg_map_path': str(path), 'reduce_zero_label': False, 'seg_fields': [], 'ori_shape': (60, 80)}
    )


@pytest.mark.parametrize('content', HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_picture_is_one_message_wherever_it_is_opened(tmp_path, content, recwarn):
    path = tmp_path / 'cat.jpg'
    path.write_bytes(content)
    with pytest.raises(UnreadableImage, match=r'Cannot decode image .*cat\.jpg'), open_image(path, path) as image:
        image.load()
    with pytest.raises(UnreadableImage, match=r'Cannot decode image .*cat\.jpg'):
        LoadImage().transform({'img_path': str(path)})
    with pytest.raises(UnreadableImage, match=r'Cannot decode image .*cat\.jpg'):
        ImageSource('cat', path).load()
    with pytest.raises(TPAError, match=r'Cannot read labels .*cat\.jpg'):
        load_labels(path)
    with pytest.raises(ValueError, match='is not an image, or it is damaged'):
        labels.read(content)
    with pytest.raises(TPAError, match=r'cat\.jpg cannot be read'):
        read_upload(content, 'cat.jpg', Limits())
    assert read_image(path) is None
    assert read_original(BaseDataElement(metainfo={'img_path': str(path)}), (60, 80)) is None


@pytest.mark.parametrize('kind', FORMATS)
def test_every_format_of_the_list_is_read(tmp_path, kind):
    (tmp_path / 'a').write_bytes(encoded(kind))
    with open_image(tmp_path / 'a', 'a') as image:
        assert image.convert('RGB').size == (80, 60)
    assert LoadImage().transform({'img_path': str(tmp_path / 'a')})['img'].shape == (60, 80, 3)


def test_pixels_are_limited_by_the_header_and_the_limit_can_be_raised(monkeypatch):
    with pytest.raises(UnreadableImage, match='30000 x 30000 pixels, the limit is 200 megapixels'):
        open_image(bomb(), 'a').__enter__()
    with pytest.raises(UnreadableImage, match='the limit is 40 megapixels'):
        open_image(bomb(7000, 7000), 'a', megapixels=40).__enter__()
    # Pillow itself refuses 190 megapixels.
    with open_image(bomb(19_000, 10_000), 'a') as image:
        assert image.size == (19_000, 10_000)
    monkeypatch.setenv('TPA_MEGAPIXELS', '1000')
    with open_image(bomb(), 'a') as image:
        assert image.size == (30_000, 30_000)
    monkeypatch.setenv('TPA_MEGAPIXELS', 'many')
    with pytest.raises(TPAError, match="TPA_MEGAPIXELS must be a number, got 'many'"):
        open_image(bomb(), 'a').__enter__()


def test_too_little_memory_is_a_message():
    with (
        pytest.raises(UnreadableImage, match=r'Cannot decode image a \(not enough memory\)'),
        open_image(bomb(9, 9), 'a'),
    ):
        raise MemoryError


@pytest.mark.parametrize('mode', ['RGB', 'RGBA', 'P', '1', 'I;16', 'I', 'F'])
def test_an_image_is_shrunk_in_its_own_mode(mode):
    image = Image.new(mode, (400, 200))
    shrink(image, 0.005)
    assert (image.mode, image.size) == (mode, (100, 50))


def test_a_jpeg_is_shrunk_while_it_is_decoded(monkeypatch):
    sizes = []
    with open_image(encoded('JPEG', np.resize(PIXELS, (800, 1600, 3))), 'a') as image:
        original = type(image).load
        monkeypatch.setattr(type(image), 'load', lambda self: sizes.append(self.size) or original(self))
        shrink(image, 0.02)
    assert image.size == (200, 100)
    assert max(sizes) <= (400, 200)


def test_a_pipe_is_not_an_image(tmp_path):
    os.mkfifo(tmp_path / 'cat.jpg')
    with pytest.raises(TPAError, match='Image not found: .*cat.jpg'):
        list_images(tmp_path / 'cat.jpg')


def test_the_package_opens_pictures_in_one_place():
    sources = {path.name: path.read_text(encoding='utf-8') for path in (ROOT / 'tpa_mmseg').rglob('*.py')}
    assert [name for name, text in sources.items() if 'Image.open(' in text or 'imread(' in text] == []
