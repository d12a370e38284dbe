from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from tpa_mmseg.miniature.splits import split_of
from tpa_mmseg.visualization import figure_names, read_image


def saved(path, array, **options):
    Image.fromarray(array, **options).save(path)
    return path


def test_grey_image_is_shown_grey(tmp_path):
    picture = read_image(saved(tmp_path / 'gray.png', np.array([[0, 100, 255]], dtype=np.uint8)))
    assert [picture.getpixel((x, 0)) for x in range(3)] == [(0, 0, 0), (100, 100, 100), (255, 255, 255)]


def test_sixteen_bit_image_fills_the_visible_range(tmp_path):
    picture = read_image(saved(tmp_path / 'deep.png', np.array([[0, 2000, 4000]], dtype=np.uint16)))
    assert [picture.getpixel((x, 0))[0] for x in range(3)] == [0, 128, 255]


def test_sixteen_bit_image_of_one_value_can_be_shown(tmp_path):
    assert read_image(saved(tmp_path / 'flat.png', np.full((2, 3), 9, dtype=np.uint16))).size == (3, 2)


def test_transparent_parts_are_white(tmp_path):
    rgba = np.array([[[255, 0, 0, 255], [255, 0, 0, 0]]], dtype=np.uint8)
    picture = read_image(saved(tmp_path / 'clear.png', rgba))
    assert [picture.getpixel((x, 0)) for x in range(2)] == [(255, 0, 0), (255, 255, 255)]


def test_float_image_with_nan_can_be_shown(tmp_path):
    picture = read_image(saved(tmp_path / 'depth.tiff', np.array([[1.0, np.nan, 3.0]], dtype=np.float32)))
    assert [picture.getpixel((x, 0))[0] for x in range(3)] == [0, 0, 255]


def test_palette_image_is_shown_in_its_colors(tmp_path):
    Image.new('RGB', (2, 2), (10, 200, 30)).quantize(4).save(tmp_path / 'few.png')
    assert read_image(tmp_path / 'few.png').getpixel((0, 0)) == (10, 200, 30)


def test_camera_rotation_is_undone(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new('RGB', (30, 20)).save(tmp_path / 'turned.jpg', exif=exif)
    assert read_image(tmp_path / 'turned.jpg').size == (20, 30)


@pytest.mark.parametrize('content', [None, b'', b'not a picture', b'\x89PNG\r\n\x1a\n broken'])
def test_what_cannot_be_read_is_no_picture(tmp_path, content):
    path = tmp_path / 'broken.png'
    if content is not None:
        path.write_bytes(content)
    assert read_image(path) is None


def test_truncated_image_is_no_picture(tmp_path):
    path = saved(tmp_path / 'half.png', np.random.default_rng(0).integers(0, 255, (50, 50, 3), dtype=np.uint8))
    path.write_bytes(path.read_bytes()[:1000])
    assert read_image(path) is None


def test_no_path_is_no_picture():
    assert read_image(None) is None


def test_pictures_of_one_folder_keep_the_image_names():
    assert figure_names(['d/a.jpg', 'd/b.c.jpg']) == {'d/a.jpg': 'a.png', 'd/b.c.jpg': 'b.c.png'}


def test_pictures_of_several_folders_keep_the_folders_below_the_shared_one():
    assert figure_names(['/data/val/x/a.jpg', '/data/val/y/a.jpg']) == {
        '/data/val/x/a.jpg': 'x/a.png',
        '/data/val/y/a.jpg': 'y/a.png',
    }


def test_names_that_differ_in_their_suffix_only_keep_it():
    assert figure_names(['d/a.jpg', 'd/a.png']) == {'d/a.jpg': 'a.jpg.png', 'd/a.png': 'a.png.png'}


def test_no_picture_lands_outside_its_folder():
    names = figure_names(['../elsewhere/a.jpg', '/absolute/b.jpg', 'here/c.jpg'])
    assert len(set(names.values())) == 3
    assert not any(name.startswith(('/', '..')) for name in names.values())


def test_an_image_that_occurs_twice_has_one_picture():
    assert figure_names(['d/a.jpg', 'd/a.jpg']) == {'d/a.jpg': 'a.png'}
    assert figure_names([]) == {}


def test_painted_scenes_are_read_like_files():
    scene = split_of('val').scene(1)
    assert np.array_equal(np.asarray(read_image('miniature://images/val/00001.png')), scene.image)
    assert read_image('miniature://images/val/one.png') is None
    assert read_image('elsewhere://image.png') is None
