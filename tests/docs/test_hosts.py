"""The configs of docs/wrap_a_model.md and docs/add_a_host.md run as they stand, on a few images."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmseg.registry import MODELS

from tests.docs.pages import file_of
from tests.helpers.world import FCN, results, run_in_process
from tpa_mmseg.catalog import CONFIGS

HOST_FILE, HOST_CONFIG = (file_of('docs/add_a_host.md', f'nearest_color{end}.py') for end in ('', '_config'))
SCENES = ('test_dataloader.dataset.split=val', 'test_dataloader.dataset.size=7', 'custom_hooks.0.pool.size=5')


def run(folder: Path, config: str, *options: str) -> dict:
    """Tests an example's config."""
    path = folder / 'example.py'
    path.write_text(config.replace('configs/miniature/fcn_mini.py', str(FCN)), encoding='utf-8')
    run_in_process('test', path, '--work-dir', folder / 'work', '--cfg-options', *options)
    return results(folder / 'work')


def test_a_segmentor_by_a_config(tmp_path: Path) -> None:
    config = file_of('docs/wrap_a_model.md', 'my_host.py')
    assert run(tmp_path, config, *SCENES)['host']['mIoU'] > 50


def ade20k(folder: Path, count: int = 3) -> Path:
    """Writes images and labels in the layout of ADE20K."""
    random = np.random.RandomState(0)
    for part in ('images', 'annotations'):
        (folder / part / 'validation').mkdir(parents=True)
    for index in range(count):
        labels = np.kron(random.randint(0, 151, (2, 3)), np.ones((40, 40))).astype(np.uint8)
        cv2.imwrite(str(folder / f'images/validation/{index}.jpg'), random.randint(0, 256, (80, 120, 3), np.uint8))
        cv2.imwrite(str(folder / f'annotations/validation/{index}.png'), labels)
    return folder


@pytest.mark.filterwarnings(
    'ignore:pkg_resources is deprecated', 'ignore:The draw is False', 'ignore:`reduce_zero_label`'
)
def test_a_model_of_the_zoo_by_a_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is as printed but for data, weights, image size and encoder, which are small."""
    monkeypatch.chdir(tmp_path)
    config = file_of('docs/wrap_a_model.md', 'my_model.py')
    (checkpoint,) = re.findall(r"checkpoint='([^']+)'", config)
    segmentor = MODELS.build(Config.fromfile(_saved(tmp_path, config)).model.host.segmentor)
    torch.save({'state_dict': segmentor.state_dict(), 'meta': {}}, checkpoint)
    encoder = Config.fromfile(CONFIGS / '_base_/miniature.py').miniature.encoder
    small = {key: value for key, value in encoder.to_dict().items() if key != '_delete_'}
    data = f'test_dataloader.dataset.data_root={ade20k(tmp_path / "ade")}'
    small_images = 'test_dataloader.dataset.pipeline.1.scale=(128, 64)'
    options = (data, 'custom_hooks.0.pool.size=2', small_images, 'test_dataloader.num_workers=0')
    report = run(tmp_path, f"{config}model['encoder'] = {small}\n", *options)
    assert len(report['per_class']) == 150 and {'host', 'tpa', 'gain'} <= report.keys()


def _saved(folder: Path, config: str) -> Path:
    path = folder / 'my_model.py'
    path.write_text(config, encoding='utf-8')
    return path


def test_a_host_by_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'nearest_color.py').write_text(HOST_FILE, encoding='utf-8')
    monkeypatch.syspath_prepend(tmp_path)
    try:
        report = run(tmp_path, HOST_CONFIG, *SCENES)
    finally:
        sys.modules.pop('nearest_color', None)
    assert report['host']['mIoU'] > 5
    assert report['tpa']['mIoU'] != pytest.approx(report['host']['mIoU'])
