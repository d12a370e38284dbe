from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evaluation import samples

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_two_ranks_give_the_report_of_one_when_the_images_do_not_divide(tmp_path):
    torchrun = [sys.executable, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node=2']
    env = {**os.environ, 'PYTHONPATH': str(ROOT), 'OMP_NUM_THREADS': '1'}
    subprocess.run([*torchrun, samples.__file__, '7'], cwd=tmp_path, env=env, check=True, timeout=300)
    expected = json.loads(json.dumps(samples.report_of_this_rank(images=7)))
    reports = {path.name: json.loads(path.read_text()) for path in tmp_path.glob('*.json')}
    assert reports == {'gpu_rank0.json': expected, 'cpu_rank0.json': expected}
