"""Huge images."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import cv2
import pytest

from tests.helpers.tiny_segmenter import painted, tiny_config
from tests.helpers.world import ROOT, environment
from tpa_mmseg.apis import Segmenter


@pytest.mark.slow
def test_48_megapixels_are_segmented_and_saved_within_2_gb(tmp_path: Path) -> None:
    coarse = painted(0, (600, 800))
    cv2.imwrite(str(tmp_path / 'huge.jpg'), cv2.resize(coarse, (8000, 6000)))
    command = [sys.executable, '-m', 'tests.apis.huge', str(tmp_path / 'huge.jpg'), str(tmp_path / 'out')]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    size, megabytes = done.stdout.splitlines()[-2:]
    assert size == '(6000, 8000)'
    assert int(megabytes) < 2048
    assert cv2.imread(str(tmp_path / 'out/labels/huge.png'), cv2.IMREAD_UNCHANGED).shape[:2] == (6000, 8000)


def test_refining_host_decides_on_two_megapixels_and_labels_all(tmp_path: Path) -> None:
    segmenter = Segmenter('cat, dog', tiny_config('NACLIP', pamr_steps=1, pamr_dilations=(1,)), progress=False)
    image = painted(0, (1500, 2000))
    result = segmenter.segment(image)
    height, width = segmenter.evidence(result.image).scores.size
    assert 1_900_000 < height * width < 2_100_000 and height / width == pytest.approx(0.75, abs=0.01)
    assert result.labels.shape == result.host_labels.shape == segmenter.anchors(image).shape == (1500, 2000)
