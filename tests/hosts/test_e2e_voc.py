"""Whole runs of ``tools/test.py`` with the shipped configs, against those of the original implementations.

A VOC tree of four images and a tiny CLIP stand in for the data and the weights; everything else is what users run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.helpers.golden import golden_file, golden_files, tiny_clip
from tests.helpers.world import ROOT, results, run_in_process

# run: (config, settings that differ from it, aAcc, mIoU, mAcc)
RUNS = {
    'sclip_voc21': ('sclip/sclip_vit-b16_voc21', {}, 41.84, 11.88, 30.57),
    'sclip_voc20': ('sclip/sclip_vit-b16_voc20', {}, 26.86, 4.70, 27.24),
    'naclip_voc21': ('naclip/naclip_vit-b16_voc21', {}, 32.96, 9.73, 20.89),
    'naclip_voc21_nopamr': ('naclip/naclip_vit-b16_voc21', {'pamr_steps': 0}, 31.62, 9.23, 19.81),
    'naclip_voc21_slide_nopamr': (
        'naclip/naclip_vit-b16_voc21',
        {'pamr_steps': 0, 'slide_crop': 224, 'slide_stride': 112},
        32.04,
        9.26,
        19.26,
    ),
    'naclip_voc20': ('naclip/naclip_vit-b16_voc20', {}, 44.06, 11.11, 21.43),
    'clearclip_voc21_ClearCLIP_fp32': ('clearclip/clearclip_vit-b16_voc21', {}, 48.14, 9.47, 18.86),
    'clearclip_voc21_default_vanilla_fp32': (
        'clearclip/clearclip_vit-b16_voc21',
        {'attention': 'vanilla'},
        35.35,
        6.75,
        16.32,
    ),
    'clearclip_voc20_ClearCLIP_fp32': ('clearclip/clearclip_vit-b16_voc20', {}, 36.76, 7.51, 18.80),
}
# Of these the label maps are committed as well.
COMMITTED = ['sclip_voc21', 'naclip_voc21', 'clearclip_voc21_ClearCLIP_fp32']
SCORES = ('aAcc', 'mIoU', 'mAcc')
TINY_VIT = {'img_size': 28, 'patch_size': 14, 'embed_dim': 32, 'depth': 1, 'num_heads': 2}


def small_config(path: Path, config: str, weights: str, **host) -> Path:
    """Writes a config that inherits a shipped one, with the small data and the tiny CLIP in place of the real ones."""
    clip = {'_delete_': True, 'model': tiny_clip(), 'pretrained': weights}
    root = golden_file('e2e_voc', 'VOC2012')
    path.write_text(
        f'_base_ = {str(ROOT / "configs" / config) + ".py"!r}\n'
        f'model = dict(host={ {"clip": clip, **host}!r})\n'
        f'test_dataloader = dict(num_workers=0, dataset=dict(data_root={str(root)!r}))\n',
        encoding='utf-8',
    )
    return path


@pytest.mark.parametrize('run', RUNS)
def test_run_gives_the_numbers_of_the_original(run: str, tmp_path: Path, clip_weights: Callable[[int], str]) -> None:
    config, changes, *expected = RUNS[run]
    path = small_config(tmp_path / 'config.py', config, clip_weights(16), **changes)
    run_in_process('test', path, '--no-tpa', '--work-dir', tmp_path / 'work', '--out', tmp_path / 'labels')
    assert scores(tmp_path / 'work' / 'no-tpa') == expected
    for predictions in map(np.load, label_maps(run)):
        for image in predictions.files:
            # As in the dataset's own files, the labels of VOC20 count from one.
            labels = np.asarray(Image.open(tmp_path / 'labels' / f'{image}.png')) - ('voc20' in run)
            assert (labels != predictions[image]).sum() == 0


@pytest.mark.parametrize('run', COMMITTED)
def test_numbers_above_are_those_of_the_original_run(run: str) -> None:
    metrics = json.loads(golden_file('e2e_voc', f'{run}.json').read_text(encoding='utf-8'))['metrics']
    assert [round(metrics[name], 2) for name in SCORES] == list(RUNS[run][2:])
    assert [len(np.load(path).files) for path in label_maps(run)] == [4]


def test_run_with_tpa_scores_the_same_host(tmp_path: Path, clip_weights: Callable[[int], str]) -> None:
    config, _, *expected = RUNS['sclip_voc21']
    path = small_config(tmp_path / 'config.py', config, clip_weights(16))
    encoder = {'type': 'TimmEncoder', 'model': TINY_VIT, 'pretrained': False}
    with path.open('a', encoding='utf-8') as file:
        file.write(f'model.update(encoder=dict(_delete_=True, **{encoder!r}))\n')
    run_in_process('test', path, '--work-dir', tmp_path / 'work')
    assert scores(tmp_path / 'work') == expected
    report = results(tmp_path / 'work')
    assert report['bank']['images'] == 4
    assert report['tpa'] != report['host']


def scores(work_dir: Path) -> list[float]:
    return [results(work_dir)['host'][name] for name in SCORES]


def label_maps(run: str) -> list[Path]:
    """The file of the original run's label maps, where it is at hand."""
    return golden_files('e2e_voc', f'{run}_pred.npz')
