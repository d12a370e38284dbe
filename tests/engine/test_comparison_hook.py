from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tests.engine.noisy_run import NoisyTruth, run, write_images
from tpa_mmseg.errors import TPAError
from tpa_mmseg.visualization import DIFFERENCE_COLORS, Difference


def pictures(folder: Path) -> dict[str, Image.Image]:
    return {str(path.relative_to(folder)): Image.open(path) for path in sorted(folder.rglob('*')) if path.is_file()}


def share(picture: Image.Image, kind: Difference) -> int:
    color = tuple(int(value) for value in DIFFERENCE_COLORS[kind])
    return sum(count for count, found in picture.getcolors(1 << 24) if found == color)


def hook(folder: Path, **options) -> list[dict]:
    return [dict(type='ComparisonHook', out_dir=str(folder / 'show'), **options)]


def test_every_image_has_its_picture_even_with_the_name_of_another(tmp_path):
    write_images(tmp_path)
    run(tmp_path, NoisyTruth(), hook(tmp_path))
    assert set(pictures(tmp_path / 'show')) == {'a/x.png', 'b/x.png', 'b/y.png'}


def test_picture_shows_what_was_corrected(tmp_path):
    write_images(tmp_path, size=(12, 16))
    run(tmp_path, NoisyTruth(), hook(tmp_path, max_images=1))
    ((name, picture),) = pictures(tmp_path / 'show').items()
    assert name == 'a/x.png'
    # TPA corrects one row of twelve, leaves one wrong and nine right; a pixel is shown as 30 x 30, plus a swatch.
    one_row = 16 * 30 * 30
    for kind, rows in ((Difference.CORRECTED, 1), (Difference.BOTH_WRONG, 1), (Difference.BOTH_RIGHT, 9)):
        assert rows * one_row < share(picture, kind) < rows * one_row + 1300
    assert share(picture, Difference.BROKEN) < 1300


def test_plain_segmentor_has_no_difference_panel(tmp_path):
    write_images(tmp_path, names=['x.png'])
    run(tmp_path, NoisyTruth(with_host=False), hook(tmp_path))
    picture = pictures(tmp_path / 'show')['x.png']
    assert share(picture, Difference.CORRECTED) == 0
    assert 3 * 480 < picture.width < 4 * 480


def test_missing_img_path_is_one_sentence(tmp_path):
    class Forgetful(NoisyTruth):
        def forward(self, inputs, data_samples, mode='predict'):
            samples = super().forward(inputs, data_samples, mode)
            for sample in samples:
                del sample.img_path
            return samples

    write_images(tmp_path, names=['x.png'])
    with pytest.raises(TPAError, match='img_path'):
        run(tmp_path, Forgetful(), hook(tmp_path))
