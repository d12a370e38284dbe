"""Every plug-in and baseline that goes around a host runs on the miniature world through the tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.world import ROOT, results, run_in_process

NAMES = ['naclip-mlmp_mini-b8', 'proxyclip-mlmp_mini-b8', 'naclip-lame_mini-b8', 'naclip-t3a-stream_mini-b8']


@pytest.mark.parametrize('name', [*NAMES, 'naclip-tent_mini-b8'])
def test_config_runs_with_tpa_around_it(name: str, tmp_path: Path) -> None:
    options = ['test_dataloader.dataset.size=1', 'custom_hooks.0.pool.size=1']
    config = ROOT / f'configs/miniature/{name}.py'
    run_in_process('test', config, '--work-dir', tmp_path, '--cfg-options', *options)
    report = results(tmp_path)
    assert 0 < report['host']['mIoU'] <= 100 and 0 < report['tpa']['mIoU'] <= 100
    assert report['bank']['images'] == 1
