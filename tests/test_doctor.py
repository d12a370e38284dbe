"""The doctor knows the set-ups that cannot work, and says so in one sentence each."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tpa_mmseg import environment

ROOT = Path(__file__).parents[1]

HEALTHY = {
    **dict.fromkeys(environment.NEEDED, '1.0'),
    'python': '3.11.7',
    'torch': '2.14.1+cu130',
    'torchvision': '0.29.2+cu132',
    'numpy': '2.4.6',
    'setuptools': '81.0.0',
    'mmengine': '0.10.7',
    'mmcv-lite': '2.1.0',
    'mmsegmentation': '1.2.2',
}
STOCK = ('mmengine', 'mmcv-lite', 'mmsegmentation')
FORKS = {'onedl-mmengine': '0.10.12', 'onedl-mmcv': '2.3.6', 'onedl-mmsegmentation': '1.4.2'}


def with_changes(*dropped: str, **changes: str) -> dict[str, str]:
    """The healthy facts without some distributions and with others; ``mmcv_lite`` stands for ``mmcv-lite``."""
    changes = {name.replace('_', '-'): version for name, version in changes.items()}
    return {name: version for name, version in {**HEALTHY, **changes}.items() if name not in dropped}


@pytest.mark.parametrize(
    'facts',
    [
        HEALTHY,
        with_changes('mmcv-lite', mmcv='2.1.0'),
        {**with_changes(*STOCK, setuptools='84.2.1'), **FORKS},
        with_changes(torch='2.0.1+cu118', torchvision='0.15.2+cu118', numpy='1.26.4'),
        with_changes(torch='2.5.1+cpu', torchvision='0.20.1+cpu'),
        with_changes(torch='2.14.1+cpu', torchvision='0.29.2'),
        with_changes(torch='2.3.0a0+6ddf5cf85e', torchvision='0.18.0a0'),
        with_changes(torch='', torchvision='', mmcv_lite='', setuptools=''),
    ],
    ids=['stock', 'full mmcv', 'forks', 'old pair', 'CPU pair', 'no labels', 'own build', 'versions unknown'],
)
def test_set_ups_that_work_have_no_problem(facts):
    assert environment.problems(facts) == []


@pytest.mark.parametrize(
    ('facts', 'words'),
    [
        (with_changes(python='3.9.18'), ['Python 3.10', '3.9.18']),
        (with_changes('timm'), ['timm is not installed', 'pip install -e .']),
        (with_changes('timm', 'mmsegmentation'), ['timm, mmsegmentation are not installed']),
        (with_changes(torch='2.14.1+cpu'), ['2.14.1+cpu', '0.29.2+cu132', 'CPU', 'CUDA']),
        (with_changes(torch='2.13.0+cu130'), ['2.13.0', '0.29.2', 'not made for each other']),
        (with_changes(torch='2.2.2', torchvision='0.17.2'), ['numpy 2.4.6', "'numpy<2'"]),
        (with_changes(mmcv_lite='2.2.0'), ['mmsegmentation 1.2.2', 'mmcv-lite 2.2.0', "'mmcv-lite<2.2'"]),
        (with_changes('mmcv-lite', mmcv='2.2.0'), ['mmcv 2.2.0', 'pip uninstall -y mmcv`']),
        (with_changes('mmcv-lite', mmcv='1.7.2'), ['refuses mmcv 1.7.2']),
        (with_changes('mmcv-lite', onedl_mmcv='2.3.6'), ['refuses onedl-mmcv 2.3.6']),
        (with_changes(onedl_mmcv='2.3.6'), ['mmcv-lite and onedl-mmcv', 'pip uninstall -y mmcv-lite onedl-mmcv']),
        (with_changes(onedl_mmengine='0.10.12'), ['mmengine and onedl-mmengine', 'overwrite']),
    ],
)
def test_a_set_up_that_cannot_work_is_fatal_and_told_in_one_sentence(facts, words):
    (problem,) = environment.problems(facts)
    assert problem.fatal
    assert '\n' not in problem.sentence
    for word in words:
        assert word in problem.sentence


@pytest.mark.parametrize(
    ('facts', 'words'),
    [
        (with_changes(setuptools='82.0.0'), ['pkg_resources', 'setuptools 82.0.0', "'setuptools<82'"]),
        (with_changes(mmcv='2.1.0'), ['mmcv-lite and mmcv', 'pip uninstall -y mmcv-lite mmcv']),
    ],
)
def test_a_set_up_that_works_in_part_is_told_but_not_fatal(facts, words):
    (problem,) = environment.problems(facts)
    assert not problem.fatal
    for word in words:
        assert word in problem.sentence


def test_every_problem_is_told_at_once():
    facts = with_changes('timm', mmcv_lite='2.2.0', setuptools='84.0.0', torch='2.14.1+cpu')
    assert len(environment.problems(facts)) == 4


def test_the_survey_tells_the_installed_versions():
    facts = environment.survey()
    assert facts['timm'] == importlib.metadata.version('timm')
    assert facts['torch'].partition('+')[0] == importlib.metadata.version('torch').partition('+')[0]
    assert facts['python'] == sys.version.split()[0]


def run_python(*arguments: str, first: Path | None = None) -> subprocess.CompletedProcess:
    """Runs a fresh interpreter in which the package, and the folder ``first`` before everything, can be imported."""
    path = os.pathsep.join(str(folder) for folder in (first, ROOT) if folder)
    environ = {**os.environ, 'PYTHONPATH': path}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environ, cwd=ROOT)


def test_the_doctor_finds_this_environment_healthy():
    answer = run_python('-m', 'tpa_mmseg.doctor')
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.endswith('everything needed is here\n')
    assert answer.stderr == ''


def test_the_doctor_runs_where_nothing_is_installed():
    # Without the site module there are no site-packages.
    answer = run_python('-S', '-m', 'tpa_mmseg.doctor')
    assert answer.returncode == 1
    assert 'problem: torch, torchvision, numpy' in answer.stdout
    assert 'are not installed: run `pip install -e .`' in answer.stdout
    assert answer.stderr == ''


@pytest.fixture
def foreign_pair(tmp_path: Path) -> Path:
    """A folder with a torch for the CPU and a torchvision for CUDA, neither of which can be imported."""
    for package, version, lines in (
        ('torch', '2.14.1', "__version__ = '2.14.1'\ncuda: str | None = None\nhip: str | None = None\n"),
        ('torchvision', '0.29.2', "__version__ = '0.29.2+cu132'\n"),
    ):
        (tmp_path / package).mkdir()
        (tmp_path / package / '__init__.py').write_text(
            'raise RuntimeError("operator torchvision::nms does not exist")'
        )
        (tmp_path / package / 'version.py').write_text(lines)
        metadata = tmp_path / f'{package}-{version}.dist-info' / 'METADATA'
        metadata.parent.mkdir()
        metadata.write_text(f'Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n')
    return tmp_path


def test_a_foreign_pair_is_found_without_importing_it(foreign_pair):
    answer = run_python('-m', 'tpa_mmseg.doctor', first=foreign_pair)
    assert answer.returncode == 1
    assert 'problem: torch 2.14.1+cpu and torchvision 0.29.2+cu132 do not fit together' in answer.stdout


def test_importing_the_package_on_a_foreign_pair_ends_in_the_same_sentence(foreign_pair):
    answer = run_python('-c', 'import tpa_mmseg', first=foreign_pair)
    assert answer.returncode == 1
    last = answer.stderr.splitlines()[-1]
    assert last.startswith('ImportError: torch 2.14.1+cpu and torchvision 0.29.2+cu132 do not fit together')


def test_the_doctor_tells_what_does_not_import(tmp_path):
    (tmp_path / 'timm').mkdir()
    (tmp_path / 'timm' / '__init__.py').write_text('raise OSError("libsomething.so.1: cannot open")')
    answer = run_python('-m', 'tpa_mmseg.doctor', first=tmp_path)
    assert answer.returncode == 1
    assert 'problem: timm does not import (OSError: libsomething.so.1: cannot open)' in answer.stdout
