"""The doctor knows the environments that cannot work, and says how to fix each of them."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tpa_tools import doctor

from tests.helpers.project import requirements

ROOT = Path(__file__).parents[1]
DOCTOR = str(ROOT / 'tools' / 'doctor.py')
REQUIRED = requirements()

HEALTHY = {
    **{doctor.normalized(line.partition('>')[0]): '9.0' for line in REQUIRED},
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
        with_changes(torch='2.5.1+cpu', torchvision='0.20.1+cpu'),
        with_changes(torch='2.14.1+cpu', torchvision='0.29.2'),
        with_changes(torch='2.6.0a0+6ddf5cf85e', torchvision='0.21.0a0'),
    ],
    ids=['stock', 'full mmcv', 'forks', 'CPU pair', 'no labels', 'own build'],
)
def test_environments_that_work_have_no_problem(facts):
    assert doctor.problems(facts, REQUIRED) == []


@pytest.mark.parametrize(
    ('facts', 'words'),
    [
        (with_changes('timm'), ['Not installed: timm.', "`pip install 'tpa_mmseg'`"]),
        (with_changes('timm', 'mmsegmentation'), ['Not installed: timm, mmseg.', "`pip install 'tpa_mmseg[lite]'`"]),
        (with_changes(timm='0.9.2'), ['needs timm>=1.0', "`pip install 'timm>=1.0"]),
        (with_changes(torch='2.14.1+cpu'), ['2.14.1+cpu', '0.29.2+cu132', 'not made for each other']),
        (with_changes(torch='2.13.0+cu130'), ['2.13.0', '0.29.2', 'not made for each other']),
        (with_changes(mmcv_lite='2.2.0'), ['mmsegmentation 1.2.2', 'mmcv-lite 2.2.0', "'mmcv-lite<2.2'"]),
        (with_changes('mmcv-lite', mmcv='2.2.0'), ['mmcv 2.2.0', 'pip uninstall -y mmcv`']),
        (with_changes('mmcv-lite', mmcv='1.7.2'), ['refuses mmcv 1.7.2']),
        (with_changes('mmcv-lite', onedl_mmcv='2.3.6'), ['refuses onedl-mmcv 2.3.6']),
        (with_changes(mmcv='2.1.0'), ['mmcv-lite and mmcv', 'pip uninstall -y mmcv-lite mmcv']),
        (with_changes(onedl_mmengine='0.10.12'), ['mmengine and onedl-mmengine', 'overwrite']),
        (with_changes(setuptools='82.0.0'), ['pkg_resources', 'setuptools 82.0.0', "'setuptools<82'"]),
    ],
)
def test_an_environment_that_cannot_work_gets_one_message(facts, words):
    (problem,) = doctor.problems(facts, REQUIRED)
    assert '\n' not in problem
    for word in words:
        assert word in problem


def test_a_torch_built_for_numpy_1_wants_numpy_1():
    facts = with_changes(torch='2.2.2', torchvision='0.17.2')
    assert any('numpy 2.4.6' in problem and "'numpy<2'" in problem for problem in doctor.problems(facts, []))
    assert not doctor.problems({**facts, 'numpy': '1.26.4'}, [])


def test_a_torch_that_is_too_old_is_named():
    facts = with_changes(torch='2.0.1', torchvision='0.15.2', numpy='1.26.4')
    first, second = doctor.problems(facts, REQUIRED)
    assert 'needs torch>=' in first and 'this is 2.0.1' in first and 'needs torchvision>=' in second


def test_a_torch_that_does_not_read_pickles_safely_is_a_warning(monkeypatch, capsys):
    monkeypatch.setattr(doctor, 'survey', lambda: with_changes('timm', torch='2.9.1'))
    doctor.diagnose(as_json=True)
    assert 'only safetensors files are read' in json.loads(capsys.readouterr().out)['installed']['warning']


def test_every_problem_is_told_at_once():
    facts = with_changes('timm', mmcv_lite='2.2.0', setuptools='84.0.0', torch='2.14.1+cpu')
    assert len(doctor.problems(facts, REQUIRED)) == 4


def test_an_extra_is_shown_and_never_required():
    required = ['torch>=2.1', 'gradio>=6; extra == "webapp"', 'mmcv-lite>=2.0.0; extra == "lite"']
    assert doctor.problems(HEALTHY, required) == []
    rows = doctor.table(HEALTHY, required)
    assert rows['gradio'] == 'missing (optional: [webapp])' and rows['mmcv'].startswith('mmcv-lite 2.1.0')


def test_the_survey_has_the_installed_versions():
    assert doctor.survey()['timm'] == importlib.metadata.version('timm')


def run_python(*arguments: str, first: Path | None = None) -> subprocess.CompletedProcess:
    """Runs a fresh interpreter in which the package, and the folder ``first`` before everything, can be imported."""
    path = os.pathsep.join(str(folder) for folder in (first, ROOT) if folder)
    environ = {**os.environ, 'PYTHONPATH': path}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environ, cwd=ROOT)


def test_the_doctor_finds_this_environment_healthy():
    answer = run_python(DOCTOR, '--json', '--imports')
    assert answer.returncode == 0, answer.stdout + answer.stderr
    report = json.loads(answer.stdout)
    assert report['problems'] == [] and 'available' in report['installed']['CUDA']
    assert answer.stderr == ''


def test_the_doctor_imports_little_unless_asked():
    # torchvision, mmengine's models and timm would cost several seconds.
    code = (
        'import sys, json; from tpa_tools.doctor import diagnose; code = diagnose(); '
        'print(json.dumps(sorted({name.split(".")[0] for name in sys.modules}))); sys.exit(code)'
    )
    answer = run_python('-c', code)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    imported = json.loads(answer.stdout.splitlines()[-1])
    assert {'torch', 'cv2'} <= {*imported}
    assert not {'torchvision', 'timm', 'open_clip', 'mmengine', 'mmcv', 'mmseg', 'tpa_mmseg'} & {*imported}


def test_the_doctor_runs_where_nothing_is_installed():
    # Without the site module there are no site-packages.
    answer = run_python('-S', DOCTOR)
    assert answer.returncode == 1
    assert 'problem: Not installed: packaging, mmengine, mmcv, mmseg. `pip install' in answer.stdout


@pytest.fixture
def foreign_pair(tmp_path: Path) -> Path:
    """A folder with a torchvision that does not fit the installed torch."""
    (tmp_path / 'torchvision').mkdir()
    text = 'raise RuntimeError("operator torchvision::nms does not exist")'
    (tmp_path / 'torchvision' / '__init__.py').write_text(text)
    return tmp_path


def test_a_torchvision_for_another_torch_is_named_with_the_remedy(foreign_pair):
    answer = run_python(DOCTOR, '--imports', first=foreign_pair)
    assert answer.returncode == 1
    assert 'problem: torchvision does not import (RuntimeError: operator torchvision::nms' in answer.stdout
    assert '`pip uninstall -y torch torchvision` and then install both at once' in answer.stdout


def test_importing_the_package_in_a_broken_environment_warns_and_leads_to_the_doctor(foreign_pair):
    answer = run_python('-c', 'import tpa_mmseg; tpa_mmseg.segment', first=foreign_pair)
    assert answer.returncode == 1
    assert 'tpa_mmseg registered nothing' in answer.stderr and 'tpa doctor --imports' in answer.stderr
    last = answer.stderr.splitlines()[-1]
    assert last.startswith('ImportError: tpa_mmseg.segment cannot be used here (operator torchvision::nms')


def test_a_package_that_does_not_import_is_named(tmp_path):
    (tmp_path / 'timm').mkdir()
    (tmp_path / 'timm' / '__init__.py').write_text('raise OSError("libsomething.so.1: cannot open")')
    answer = run_python(DOCTOR, '--imports', first=tmp_path)
    assert answer.returncode == 1
    assert 'problem: timm does not import (OSError: libsomething.so.1: cannot open)' in answer.stdout
