"""Every kind of image a user may have, and the errors for everything else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.tiny_segmenter import painted, tiny_segmenter
from tpa_mmseg.apis import Segmentation, Segmentations, SkippedWarning
from tpa_mmseg.apis.images import iterate_images, list_images
from tpa_mmseg.errors import TPAError

KINDS: dict[str, Callable[[np.ndarray, Path], object]] = {
    'path': lambda pixels, path: path,
    'string': lambda pixels, path: str(path),
    'Pillow image': lambda pixels, path: Image.fromarray(pixels),
    'array': lambda pixels, path: pixels,
    'float array': lambda pixels, path: pixels / 255,
    'int64 array': lambda pixels, path: pixels.astype(np.int64),
    '16-bit array': lambda pixels, path: pixels.astype(np.uint16) * 257,
    'RGBA array': lambda pixels, path: np.dstack([pixels, np.full(pixels.shape[:2], 255, np.uint8)]),
    'tensor': lambda pixels, path: torch.from_numpy(pixels).permute(2, 0, 1),
    'float tensor': lambda pixels, path: torch.from_numpy(pixels).permute(2, 0, 1) / 255,
}


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three images, one of them in a subfolder."""
    path = tmp_path_factory.mktemp('images')
    (path / 'below').mkdir()
    for seed, name in enumerate(('a.png', 'b.PNG', 'below/a.png')):
        Image.fromarray(painted(seed)).save(path / name)
    return path


@pytest.mark.parametrize('kind', KINDS)
def test_every_kind_of_image_has_the_same_pixels(kind: str, folder: Path) -> None:
    found = list_images(KINDS[kind](painted(0), folder / 'a.png'))
    assert found.single
    (image,) = found.images
    assert np.array_equal(image.load()['img'][..., ::-1], painted(0))


@pytest.mark.parametrize('kind', ('path', 'Pillow image', 'array', 'float tensor'))
def test_one_image_gives_one_segmentation(kind: str, folder: Path) -> None:
    result = tiny_segmenter().segment(KINDS[kind](painted(0), folder / 'a.png'))
    assert isinstance(result, Segmentation)
    assert result.labels.shape == painted(0).shape[:2]


@pytest.mark.parametrize(
    'images',
    (
        lambda folder: folder,
        lambda folder: [folder / 'a.png', painted(1), Image.fromarray(painted(2))],
        lambda folder: np.stack([painted(seed) for seed in range(3)]),
        lambda folder: torch.stack([torch.from_numpy(painted(seed)).permute(2, 0, 1) for seed in range(3)]),
        lambda folder: (painted(seed) for seed in range(3)),
        lambda folder: [[folder / 'a.png', folder / 'b.PNG'], folder / 'below'],
    ),
    ids=('folder', 'mixed list', 'batch of arrays', 'batch of tensors', 'generator', 'nested lists'),
)
def test_collections_give_the_results_of_their_images(images: Callable[[Path], object], folder: Path) -> None:
    segmenter = tiny_segmenter()
    expected = [segmenter.segment([painted(seed) for seed in range(3)])[i].labels for i in range(3)]
    results = segmenter.segment(images(folder))
    assert isinstance(results, Segmentations)
    for result, labels in zip(results, expected, strict=True):
        assert np.array_equal(result.labels, labels)


def test_gray_images_are_gray_in_color() -> None:
    gray = painted(0)[..., 0]
    for given in (gray, gray[..., None], Image.fromarray(gray), torch.from_numpy(gray), torch.from_numpy(gray)[None]):
        (image,) = list_images(given).images
        assert np.array_equal(image.load()['img'], np.dstack([gray] * 3))


def test_addresses_of_file_backends_are_read_like_files() -> None:
    found = list_images('miniature://images/val/00003.png')
    assert found.single and found.images[0].name == '00003.png'
    assert found.images[0].load()['img'].ndim == 3
    assert found.images[0].key == list_images('miniature://images/val/00003.png').images[0].key
    with pytest.raises(TPAError, match='9999999.png'):
        list_images('miniature://images/nowhere/9999999.png').images[0].load()


def test_key_is_that_of_the_content(folder: Path, tmp_path: Path) -> None:
    (tmp_path / 'copy.png').write_bytes((folder / 'a.png').read_bytes())
    first, copy, other = (next(iterate_images(path)) for path in (folder / 'a.png', tmp_path, folder / 'b.PNG'))
    assert first.key == copy.key != other.key


def test_transparent_parts_become_white() -> None:
    rgba = np.dstack([painted(0), np.zeros(painted(0).shape[:2], np.uint8)])
    (image,) = list_images(rgba).images
    assert (image.load()['img'] == 255).all()


def test_images_are_turned_as_their_camera_was(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees
    Image.fromarray(painted(0)).save(tmp_path / 'turned.jpg', exif=exif, quality=95)
    height, width = painted(0).shape[:2]
    (from_file,) = list_images(tmp_path / 'turned.jpg').images
    (from_memory,) = list_images(Image.open(tmp_path / 'turned.jpg')).images
    assert from_file.load()['img'].shape == from_memory.load()['img'].shape == (width, height, 3)


@pytest.mark.parametrize(
    ('image', 'says'),
    (
        (np.zeros((3, 40, 56), np.uint8), r'\(3, 40, 56\)'),
        (np.zeros((0, 5, 3), np.uint8), r'\(0, 5, 3\)'),
        (np.linspace(-2, 2, 300).reshape(10, 10, 3), 'undo any normalization'),
        (np.full((4, 4, 3), np.nan), 'nan'),
        (42, 'type int'),
        ('nowhere.png', 'Image not found: nowhere.png'),
        ('film.mp4', 'is a video'),
        ([], 'No images to segment'),
    ),
)
def test_anything_but_an_image_is_named(image: object, says: str) -> None:
    with pytest.raises(TPAError, match=says):
        list_images(image)


def test_folder_with_a_broken_file_names_it_and_gives_the_others(folder: Path, tmp_path: Path) -> None:
    (tmp_path / 'good.png').write_bytes((folder / 'a.png').read_bytes())
    (tmp_path / 'cut.png').write_bytes((folder / 'a.png').read_bytes()[:200])
    (tmp_path / 'empty.jpg').touch()
    (tmp_path / 'notes.txt').write_text('not an image', encoding='utf-8')
    with pytest.warns(SkippedWarning, match='cut.png'):
        results = tiny_segmenter().segment(tmp_path)
    assert [result.name for result in results] == ['good.png']
    assert sorted(each.name for each in results.skipped) == ['cut.png', 'empty.jpg', 'notes.txt']


def test_single_broken_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / 'empty.jpg').touch()
    with pytest.raises(TPAError, match='empty.jpg'):
        tiny_segmenter().segment(tmp_path / 'empty.jpg')
