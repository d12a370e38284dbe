"""What users do with the configs: local settings, options on the command line, MMSegmentation's API, missing parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mmengine.config import Config
from mmseg.apis import inference_model, init_model
from PIL import Image

from tests.helpers.golden import golden_file
from tests.helpers.tiny_configs import config_path, load, shrink, vit
from tests.helpers.world import results, run_in_process

VOC = 'VOCdevkit/VOC2012'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with four images of VOC."""
    (tmp_path / 'data/VOCdevkit').mkdir(parents=True)
    (tmp_path / 'data' / VOC).symlink_to(golden_file('e2e_voc', 'VOC2012'))
    return tmp_path / 'data'


def small(name: str, path: Path) -> Path:
    """Writes a shipped config with tiny models."""
    cfg = shrink(load(name))
    features = path.with_suffix('.npz')
    np.savez(features, text_features=cfg.model.host.text_features.numpy())
    cfg.model.host.text_features = str(features)
    cfg.test_dataloader.num_workers = 0
    cfg.dump(path)
    return path


def test_data_folder_and_pool_size_are_set_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('TPA_DATA', '/datasets/of mine')
    monkeypatch.setenv('TPA_POOL_SIZE', '40')
    for name, folder in (('sclip_vit-l14_voc20', VOC), ('proxyclip-mae_vit-h14_cityscapes', 'cityscapes')):
        cfg = load(name)
        assert cfg.test_dataloader.dataset.data_root == f'/datasets/of mine/{folder}'
        assert cfg.custom_hooks[0].pool.size == 40


def test_config_survives_a_dump(tmp_path: Path) -> None:
    cfg = load('trident_vit-h14_ade20k')
    cfg.dump(tmp_path / 'flat.py')
    assert Config.fromfile(tmp_path / 'flat.py').to_dict() == cfg.to_dict()


def test_options_reach_the_host_and_the_pool(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('TPA_DATA', str(data))
    options = ['model.host.slide_crop=64', 'model.host.slide_stride=64', 'custom_hooks.0.pool.size=2']
    config = small('sclip_vit-b16_voc21', tmp_path / 'config.py')
    run_in_process('test', config, '--work-dir', tmp_path / 'work', '--cfg-options', *options)
    report = results(tmp_path / 'work')
    assert report['bank']['images'] == 2
    dumped = Config.fromfile(tmp_path / 'work/config.py')
    assert (dumped.model.host.slide_crop, dumped.model.host.slide_stride) == (64, 64)


def test_small_data_set_is_its_own_pool(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('TPA_DATA', str(data))
    config = small('proxyclip-mae_vit-b16_voc20', tmp_path / 'config.py')
    options = ['model.host.slide_crop=336', 'model.host.slide_stride=336']
    run_in_process('test', config, '--work-dir', tmp_path / 'work', '--cfg-options', *options)
    assert results(tmp_path / 'work')['bank']['images'] == 4


def test_protocol_of_mlmp_scores_at_224(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('TPA_DATA', str(data))
    config = small('naclip-224_vit-l14_voc21', tmp_path / 'config.py')
    run_in_process('test', config, '--work-dir', tmp_path / 'work', '--out', tmp_path / 'labels')
    sizes = {Image.open(path).size for path in (tmp_path / 'labels').glob('*.png')}
    assert sizes == {(224, 224)}
    support = sum(entry['support'] for entry in results(tmp_path / 'work')['per_class'])
    assert 0 < support <= 4 * 224 * 224


def test_mmseg_api_takes_the_config(data: Path, tmp_path: Path) -> None:
    model = init_model(str(small('naclip_vit-b16_voc21', tmp_path / 'config.py')), device='cpu')
    image = next((data / VOC / 'JPEGImages').iterdir())
    labels = inference_model(model, str(image)).pred_sem_seg.data
    assert tuple(labels.shape[1:]) == Image.open(image).size[::-1]


def fails(capfd: pytest.CaptureFixture, *args) -> str:
    """Runs a test that must fail, and returns the one line that says why."""
    with pytest.raises(SystemExit):
        run_in_process('test', *args)
    (said,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith('error: ')]
    return said


def test_missing_data_is_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('TPA_DATA', str(tmp_path / 'nowhere'))
    said = fails(capfd, config_path('sclip_vit-b16_voc21'), '--work-dir', tmp_path)
    assert str(tmp_path / 'nowhere' / VOC) in said and 'data/README.md' in said


def test_missing_weights_are_one_sentence(
    data: Path, tmp_path: Path, capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, no_hub: Path
) -> None:
    monkeypatch.setenv('TPA_DATA', str(data))
    monkeypatch.setenv('TPA_WEIGHTS', str(tmp_path / 'weights'))
    said = fails(capfd, config_path('sclip_vit-b16_voc21'), '--work-dir', tmp_path)
    assert 'save it as' in said and str(tmp_path / 'weights/ViT-B-16.openai.safetensors') in said


def test_tiny_models_have_the_patches_of_the_real_ones() -> None:
    names = {'vit_base_patch8_224.dino': 8, 'samvit_base_patch16.sa1b': 16, 'vit_base_patch14_reg4_dinov2.lvd142m': 14}
    assert {name: vit(name)['patch_size'] for name in names} == names
