"""make demo: tests hosts side by side, and ends with a table, results.json and a picture."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.helpers.world import ROOT, environment


@pytest.mark.slow
def test_demo_ends_with_a_table_results_and_a_picture(tmp_path: Path) -> None:
    pytest.importorskip('segment_anything')  # an extra of the package
    command = [sys.executable, ROOT / 'tools/demo.py', '--hosts', 'sclip', 'trident', '--size', '4', '--pool', '3']
    done = subprocess.run(
        [str(part) for part in command], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    results = json.loads((tmp_path / 'work_dirs/demo/results.json').read_text(encoding='utf-8'))
    assert [result['host'] for result in results] == ['SCLIP', 'Trident']
    for result in results:
        gain = result['tpa']['mIoU'] - result['base']['mIoU']
        assert result['gain']['mIoU'] == pytest.approx(gain, abs=1e-6)
        assert f'{result["base"]["mIoU"]:.2f}' in done.stdout and f'{result["tpa"]["mIoU"]:.2f}' in done.stdout
        assert 0 < result['classes_covered'] <= result['num_classes'] == 14
    with Image.open(tmp_path / 'work_dirs/demo/demo.png') as picture:
        assert picture.width > 5 * 320 and picture.height > 2 * 256
    assert 'work_dirs/demo/demo.png' in done.stdout and 'Next steps' in done.stdout


def test_a_host_that_fails_is_named_with_what_it_said(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / 'tools/demo.py', '--hosts', 'sclip', '--size', '2', '--pool', '5']
    done = subprocess.run(
        [str(part) for part in command], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 2
    assert 'Testing SCLIP failed (error: pool.size is 5 but the dataset has only 2 images' in done.stderr
