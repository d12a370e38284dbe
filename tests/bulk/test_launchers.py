"""On one machine, on Slurm and on Ray: the labels of one process, after a killed task and a second start too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.bulk import interrupted
from tests.bulk.test_shards import same
from tests.bulk.world import MODEL, read_labels, write_files
from tests.helpers import ray
from tests.helpers.world import ROOT, run_in_process
from tpa_mmseg.core import PrototypeBank


def check(folder: Path, images: dict[str, bytes], labels: dict[str, np.ndarray]) -> None:
    """Checks the labels of all images, and that only the killed task was started twice."""
    found = read_labels(folder / 'out')
    names = list(images)
    tars = {name: 'ab'[number % 2] for number, name in enumerate(names)}
    assert len(found) == len(names)
    assert all(np.array_equal(found[f'{tars[name]}.tar/{name}'], labels[name]) for name in names)
    logs = [(folder / f'out/shards/0000{number}/run.log').read_text() for number in range(2)]
    assert [log.count(f' 0000{number}\n') for number, log in enumerate(logs)] == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize('launcher', ('local', 'slurm'))
def test_killed_task_is_repeated_and_nothing_else(
    launcher: str,
    images: dict[str, bytes],
    bank: Path,
    labels: dict[str, np.ndarray],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if launcher == 'slurm':
        request.getfixturevalue('one_node_slurm')
    monkeypatch.setenv('PYTHONPATH', str(ROOT))
    interrupted.prepare(tmp_path, images)
    interrupted.run(tmp_path, bank, launcher)
    check(tmp_path, images, labels)


@pytest.mark.slow
def test_killed_task_is_repeated_and_nothing_else_on_ray(
    images: dict[str, bytes], bank: Path, labels: dict[str, np.ndarray], tmp_path: Path
) -> None:
    if (reason := ray.missing()) is not None:
        pytest.skip(reason)
    interrupted.prepare(tmp_path, images)
    done = ray.python('-m', 'tests.bulk.interrupted', tmp_path, bank, 'ray')
    assert done.returncode == 0, done.stderr
    check(tmp_path, images, labels)


@pytest.mark.slow
def test_commands_build_the_bank_and_segment_with_it(
    few: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = write_files(tmp_path / 'source', few)
    common = ['--classes', *MODEL['classes'], '--backbone', 'mini-b8', '--pool-size', 10]
    run_in_process('segment', folder, *common, '--out', tmp_path / 'bulk', '--shards', 2, '--processes', 2)
    out = capsys.readouterr().out
    assert 'Bank of 10 images' in out and 'TPA: area, %' in out and 'Segmented 30 images; ' in out
    run_in_process('segment', folder, *common, '--out', tmp_path / 'plain', '--save-bank', tmp_path / 'bank')
    same(PrototypeBank.load(tmp_path / 'bulk/bank.safetensors'), PrototypeBank.load(tmp_path / 'bank'))
    for name, found in read_labels(tmp_path / 'bulk').items():
        with Image.open(tmp_path / 'plain/labels' / name) as image:
            assert np.array_equal(found, np.asarray(image))
