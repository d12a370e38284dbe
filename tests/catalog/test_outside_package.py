"""A package outside the tree adds a host, a dataset and their entries, and gets its configs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmseg.registry import DATASETS, MODELS

from tests.helpers.world import make_world, results, run_in_process
from tpa_mmseg import catalog
from tpa_mmseg.catalog import CONFIGS, Row
from tpa_mmseg.clip.names import ClassNames
from tpa_mmseg.miniature.world import CLASSES
from tpa_mmseg.reproduce.suite import read_suite

HOST = '''
import torch
from mmseg.registry import MODELS

from tpa_mmseg.core import QueryScores
from tpa_mmseg.hosts import Host
from tpa_mmseg.hosts.batch import original_size, split_batch


@MODELS.register_module(force=True)
class Brightness(Host):
    """A class is likely where a pixel is as bright as its number says."""

    def __init__(self, classes, sharpness=1.0, **kwargs):
        super().__init__(num_classes=classes, **kwargs)
        self.register_buffer('levels', torch.linspace(0, 255, classes))
        self.sharpness = sharpness

    def score_maps(self, inputs, data_samples=None):
        maps = []
        for image, sample in split_batch(inputs, data_samples):
            distance = (image.mean(0) - self.levels[:, None, None]).abs()
            maps.append(QueryScores(-self.sharpness * distance, original_size(image, sample)))
        return maps

    def fingerprint(self):
        return {**super().fingerprint(), 'sharpness': self.sharpness}
'''
BASE = f"""
_base_ = ['{CONFIGS}/_base_/runtime.py', '{CONFIGS}/_base_/tpa.py']
custom_imports = dict(imports=['tpa_mmseg', 'bright'], allow_failed_imports=False)
model = dict(host=dict(type='Brightness', sharpness=0.5, data_preprocessor=dict(type='SegDataPreProcessor')))
"""
ENTRIES = """
configs: configs
backbones:
  none: {title: no backbone, suite: scenes}
datasets:
  scenes: {title: Scenes, counts: {7: ''}}
benchmarks:
  scenes:
    title: Scenes
    suite: scenes
    dataset: scenes
    base: scenes.py
    bases: [miniature]
    pipeline: as_is
    settings: {classes: 14}
    model: {encoder: _base_.miniature.encoder}
hosts:
  brightness: {title: Brightness, type: Brightness, base: host.py, backbones: [none], rows: {scenes: {sharpness: 0.2}}}
  sclip: {backbones: [vit-b16, vit-l14, vit-g14], rows: {voc21: {}}}
suites:
  scenes: {title: My scenes, ablation: brightness_none, ablation_benchmarks: [scenes], growth: brightness_none}
"""
DATASET = """
_base_ = '{configs}/_base_/datasets/one_by_one.py'
test_dataloader = dict(
    num_workers=0,
    dataset=dict(
        type='BaseSegDataset',
        data_root='{root}/scenes',
        data_prefix=dict(img_path='images', seg_map_path='labels'),
        img_suffix='.png',
        metainfo=dict(classes={classes!r}),
    ),
)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package ``bright``, with an entry point."""
    folder, metadata = tmp_path / 'site/bright', tmp_path / 'site/bright-1.0.dist-info'
    folder.mkdir(parents=True)
    metadata.mkdir()
    make_world(tmp_path)
    dataset = DATASET.format(configs=CONFIGS, root=tmp_path, classes=CLASSES)
    files = {'__init__.py': HOST, 'host.py': BASE, 'scenes.py': dataset, 'entries.yaml': ENTRIES}
    for name, text in files.items():
        (folder / name).write_text(text, encoding='utf-8')
    (metadata / 'METADATA').write_text('Metadata-Version: 2.1\nName: bright\nVersion: 1.0\n', encoding='utf-8')
    (metadata / 'entry_points.txt').write_text('[tpa_mmseg.catalog]\nbright = bright:entries.yaml\n', encoding='utf-8')
    monkeypatch.syspath_prepend(tmp_path / 'site')
    catalog.load.cache_clear()
    init_default_scope('mmseg')
    yield folder
    sys.modules.pop('bright', None)
    catalog.load.cache_clear()


def test_its_configs_are_written_and_its_model_is_built(package: Path) -> None:
    run_in_process('config_index', '--write', '--out', package / 'configs')
    written = sorted(path.relative_to(package / 'configs').as_posix() for path in package.rglob('configs/*/*.py'))
    assert written == ['brightness/brightness_none_scenes.py']
    cfg = Config.fromfile(package / 'configs' / written[0])
    assert (cfg.model.host.sharpness, cfg.model.host.classes) == (0.2, 14)
    model = MODELS.build(cfg.model)
    model.set_classes(DATASETS.build(cfg.test_dataloader.dataset).metainfo)
    assert type(model.host).__name__ == 'Brightness'
    with pytest.raises(SystemExit, match='0'):
        run_in_process('config_index', '--check', '--out', package / 'configs')


def test_it_is_tested_and_reproduced_like_the_others(package: Path, tmp_path: Path) -> None:
    run_in_process('config_index', '--write', '--out', package / 'configs')
    suite = read_suite(catalog.load(), 'scenes')
    assert suite.rows == (Row('brightness', '', 'none'),) and suite.images == {'scenes': 7}
    config = catalog.load().config(suite.ablation, 'scenes')
    assert config == package / 'configs/brightness/brightness_none_scenes.py'
    run_in_process('test', config, '--work-dir', tmp_path / 'work', '--cfg-options', 'custom_hooks.0.pool.size=3')
    report = results(tmp_path / 'work')
    assert report['bank']['images'] == 3 and report['host']['mIoU'] > 0


def test_backbone_of_its_own_is_written_out(package: Path, tmp_path: Path) -> None:
    more = tmp_path / 'more.yaml'
    more.write_text(
        'backbones: {vit-g14: {title: ViT-g/14, clip: {model: ViT-g-14, pretrained: laion2b_s34b_b88k}}}',
        encoding='utf-8',
    )
    run_in_process('config_index', '--write', '--out', tmp_path / 'mine', '--catalog', more)
    names = {path.name for path in (tmp_path / 'mine/sclip').glob('*.py')}
    assert {name for name in names if not name.startswith('sclip_vit-g14_')} == set() and len(names) == 8
    cfg = Config.fromfile(tmp_path / 'mine/sclip/sclip_vit-g14_voc21.py')
    shipped = Config.fromfile(CONFIGS / 'sclip/sclip_vit-b16_voc21.py')
    assert cfg.model.host.clip == {'model': 'ViT-g-14', 'pretrained': 'laion2b_s34b_b88k'}
    assert {**cfg.model.host, 'clip': None} == {**shipped.model.host, 'clip': None}


def test_dataset_of_its_own_gets_configs_of_a_shipped_host(package: Path, tmp_path: Path) -> None:
    (package / 'names.txt').write_text('grass; lawn\nwater\n', encoding='utf-8')
    (package / 'dataset.yaml').write_text(
        """
datasets: {mine: {title: Mine, counts: {7: ''}}}
benchmarks: {mine: {title: Mine, dataset: mine, base: scenes.py, settings: {class_names: names.txt}}}
hosts: {clearclip: {rows: {mine: {prob_thd: 0.3}}}}
""",
        encoding='utf-8',
    )
    run_in_process('config_index', '--write', '--out', tmp_path / 'mine', '--catalog', package / 'dataset.yaml')
    names = {path.stem for path in (tmp_path / 'mine/clearclip').glob('*.py')}
    assert {'clearclip_vit-b16_mine', 'clearclip_vit-l14_mine', 'clearclip-fsa_vit-l14_mine'} <= names
    host = Config.fromfile(tmp_path / 'mine/clearclip/clearclip-fsa_vit-l14_mine.py').model.host
    assert (host.prob_thd, host.slide_crop, host.plugin.type) == (0.3, 448, 'FSA')
    assert host.clip.model == 'ViT-L-14-quickgelu'
    assert ClassNames.read(host.class_names).queries == ['grass', 'lawn', 'water']


def test_the_configs_of_the_package_do_not_depend_on_it(package: Path) -> None:
    with pytest.raises(SystemExit, match='0'):
        run_in_process('config_index', '--check')
