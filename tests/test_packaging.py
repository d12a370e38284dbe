"""The package installs without replacing what is there, with tested versions, and works without a checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from setuptools import find_packages
from tpa_tools import doctor

import tpa_mmseg
from tests.helpers.project import PROJECT, ROOT, pins, requirements

EXTRAS = [name for name in PROJECT['project']['optional-dependencies'] if name != 'all']
PYTHONS = ['3.10', '3.11', '3.12', '3.13']


def test_no_requirement_can_replace_a_torch():
    bounds = {requirement.name: requirement.specifier for requirement in map(Requirement, requirements())}
    for name in ('torch', 'torchvision'):
        assert all(bound.operator == '>=' for bound in bounds[name])


def test_installing_never_writes_one_openmmlab_family_over_the_other():
    providers = {name for names in doctor.PROVIDERS.values() for name in names}
    required = {canonicalize_name(Requirement(line).name) for line in requirements()}
    assert not required & providers
    assert {canonicalize_name(Requirement(line).name) for line in requirements('lite')} & providers == {
        'mmengine',
        'mmcv-lite',
        'mmsegmentation',
    }


def test_all_is_every_extra_of_users():
    (line,) = requirements('all')
    assert Requirement(line).extras == {*EXTRAS} - {'ray', 'docs', 'test'}  # Ray has 600 MB


@pytest.mark.parametrize('python', PYTHONS)
def test_every_requirement_has_a_tested_version_within_its_bounds(python):
    pinned = pins(python)
    lines = [*requirements(), *(line for extra in EXTRAS for line in requirements(extra))]
    for requirement in map(Requirement, lines):
        if requirement.extras:
            continue
        (pin,) = pinned[canonicalize_name(requirement.name)].specifier
        assert pin.operator == '=='
        assert requirement.specifier.contains(pin.version), requirement


def test_every_tested_version_has_hashes():
    pinned = re.split(r'\n(?=\w)', (ROOT / 'constraints.txt').read_text())[1:]
    assert len(pinned) > 100 and all('--hash=sha256:' in lines for lines in pinned)


@pytest.mark.parametrize('python', PYTHONS)
def test_the_doctor_has_no_objection_to_the_tested_versions(python):
    facts = {name: next(iter(pin.specifier)).version for name, pin in pins(python).items()}
    assert doctor.problems(facts, requirements()) == []


def test_every_package_is_shipped():
    packages = find_packages(str(ROOT), include=['tpa_mmseg', 'tpa_mmseg.*'])
    assert PROJECT['tool']['setuptools']['packages'] == [*sorted(packages), 'tpa_tools', 'tpa_tools.config_writing']


@pytest.fixture(scope='module')
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it, and the packages of this one behind it."""
    folder = tmp_path_factory.mktemp('wheel')
    ignored = shutil.ignore_patterns('.*_cache', '.git', '.venv', '.hypothesis', '__pycache__', 'build', '*.egg-info')
    # Of data/ and work_dirs/ there may be gigabytes.
    for name in ('configs', 'tools', 'tpa_mmseg'):
        shutil.copytree(ROOT / name, folder / 'source' / name, symlinks=True, ignore=ignored)
    for name in ('pyproject.toml', 'setup.py', 'README.md', 'LICENSE', 'MANIFEST.in', 'model-index.yml'):
        shutil.copy(ROOT / name, folder / 'source' / name)
    run(sys.executable, '-m', 'build', '--wheel', '--no-isolation', folder / 'source', '--outdir', folder)
    (wheel,) = folder.glob('*.whl')
    venv.create(folder / 'env', with_pip=False)
    python = folder / 'env/bin/python'
    site = Path(run(python, '-c', 'import sysconfig; print(sysconfig.get_path("purelib"))').stdout.strip())
    run(sys.executable, '-m', 'pip', '--python', python, 'install', '--no-deps', '--no-index', wheel)
    paths = [path for path in sys.path if Path(path).is_dir() and 'site-packages' in path]
    # The last line is what setuptools' own file of this kind has: MMEngine needs distutils, which Python 3.12 dropped.
    (site / 'zz_present_packages.pth').write_text(
        '\n'.join([*paths, 'import _distutils_hack; _distutils_hack.add_shim()'])
    )
    return folder / 'env/bin'


def run(*command, cwd: Path | None = None) -> subprocess.CompletedProcess:
    hidden = ('PYTHONPATH', 'TPA_DATA', 'TPA_WEIGHTS')
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


@pytest.mark.slow
def test_the_wheel_has_what_users_need_and_nothing_else(installed):
    code = 'import tpa_mmseg, tpa_tools; print(tpa_mmseg.__file__); print(tpa_tools.__file__)'
    package, tools = (Path(line).parent for line in run(installed / 'python', '-c', code, cwd=installed).stdout.split())
    assert package.is_relative_to(installed.parent) and tools.is_relative_to(installed.parent)
    assert (package / 'py.typed').exists() and (package / 'miniature/weights/clip.safetensors').exists()
    assert (package / '.mim/configs/sclip/sclip_vit-b16_voc21.py').exists() and not (package / '.mim/tools').exists()
    assert (tools / 'slurm_test.sh').exists()
    assert not (tools / 'benchmarking').exists() and not (tools / 'miniature_training').exists()
    assert run(installed / 'tpa', '--version').stdout == f'tpa_mmseg {tpa_mmseg.__version__}\n'


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_folder(installed, tmp_path):
    empty = tmp_path / 'empty'
    empty.mkdir()
    assert 'OK: all requirements are installed' in run(installed / 'tpa', 'doctor', cwd=empty).stdout
    said = run(installed / 'tpa', 'demo', '--quick', cwd=empty).stdout
    assert 'SCLIP' in said and 'NACLIP' in said
    assert (empty / 'work_dirs/demo/demo.png').exists()
