"""What is prepared is what the configs read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mmengine.config import Config
from mmseg.registry import DATASETS

from tests.helpers.world import ROOT
from tests.prepare import archives
from tests.prepare.archives import pixels, write_tar
from tpa_mmseg.prepare import LAYOUTS, prepare

CONFIGS = {
    'voc21': 'voc',
    'voc20': 'voc',
    'context60': 'context',
    'context59': 'context',
    'coco_stuff164k': 'coco_stuff',
    'coco_object': 'coco_object',
    'cityscapes': 'cityscapes',
    'ade20k': 'ade20k',
}


def dataset_config(name: str) -> dict:
    return Config.fromfile(ROOT / f'configs/_base_/datasets/{name}.py').test_dataloader.dataset


@pytest.mark.parametrize(('config', 'dataset'), CONFIGS.items())
def test_a_config_reads_what_was_prepared(tmp_path, monkeypatch, config, dataset):
    monkeypatch.setenv('TPA_DATA', str(tmp_path))
    layout = LAYOUTS[dataset]
    stem = 'ulm/ulm_000000_000019' if dataset == 'cityscapes' else '2008_000003'
    files = {layout.image('val', stem): b'', layout.label('val', stem): b''}
    if layout.list is not None:
        files[layout.list_file('val')] = f'{stem}\n'.encode()
    archives.write_folder(tmp_path / layout.folder, files)
    built = DATASETS.build({**dataset_config(config), 'pipeline': []})
    item = built.get_data_info(0)
    assert len(built) == 1
    assert item['img_path'] == str(tmp_path / layout.folder / layout.image('val', stem))
    assert item['seg_map_path'] == str(tmp_path / layout.folder / layout.label('val', stem))
    # Where zero is taken off, the classes are one fewer than the values; zero itself is not scored.
    assert len(built.metainfo['classes']) == layout.values - built.reduce_zero_label


def test_labels_are_read_as_they_were_prepared(tmp_path, monkeypatch):
    monkeypatch.setenv('TPA_DATA', str(tmp_path))
    folder = tmp_path / LAYOUTS['voc'].folder
    prepare('voc', [write_tar(tmp_path / 'voc.tar', archives.voc(2))], folder)
    config = dataset_config('voc20')
    built = DATASETS.build({**config, 'pipeline': [dict(type='mmseg.LoadAnnotations')]})
    for item in built:
        # VOC20: the background is ignored, and every class moves down by one.
        raw = pixels(Path(item['seg_map_path'])).astype(int)
        assert (item['gt_seg_map'] == np.where(np.isin(raw, (0, 255)), 255, raw - 1)).all()
