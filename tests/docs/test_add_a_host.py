"""The examples of docs/add_a_host.md run as they stand."""

from __future__ import annotations

import re
import sys

import pytest

from tests.helpers.world import FCN, ROOT, results, run_in_process

PAGE = (ROOT / 'docs/add_a_host.md').read_text(encoding='utf-8')
SEGMENTOR_CONFIG, HOST_FILE, HOST_CONFIG = re.findall(r'```python\n(.*?)```', PAGE, re.DOTALL)


def run(folder, config: str) -> dict:
    """Tests an example's config on a few scenes."""
    path = folder / 'example.py'
    path.write_text(config.replace('configs/miniature/fcn_mini.py', str(FCN)), encoding='utf-8')
    options = ('test_dataloader.dataset.split=val', 'test_dataloader.dataset.size=7', 'custom_hooks.0.pool.size=5')
    run_in_process('test', path, '--work-dir', folder / 'work', '--cfg-options', *options)
    return results(folder / 'work')


def test_a_segmentor_by_a_config(tmp_path):
    assert run(tmp_path, SEGMENTOR_CONFIG)['host']['mIoU'] > 50


def test_a_host_by_one_file(tmp_path, monkeypatch):
    (tmp_path / 'nearest_color.py').write_text(HOST_FILE, encoding='utf-8')
    monkeypatch.syspath_prepend(tmp_path)
    try:
        report = run(tmp_path, HOST_CONFIG)
    finally:
        sys.modules.pop('nearest_color', None)
    assert report['host']['mIoU'] > 5
    assert report['tpa']['mIoU'] != pytest.approx(report['host']['mIoU'])
