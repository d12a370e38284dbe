"""Installing never replaces a torch or writes one OpenMMLab family over the other, and the tested versions fit."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tpa_mmseg import environment

ROOT = Path(__file__).parents[1]
SETUP = runpy.run_path(str(ROOT / 'setup.py'), run_name='setup')
STOCK = ['mmengine>=0.10.4', 'mmcv-lite>=2.0.0,<2.2', 'mmsegmentation>=1.2.2']
FORKS = ['onedl-mmengine', 'onedl-mmcv', 'onedl-mmsegmentation']


def openmmlab(installed: dict[str, str]) -> list[str]:
    """What setup.py asks for beyond what it always asks for."""
    return SETUP['requirements'](installed)[len(SETUP['REQUIREMENTS']) :]


def pins(python: str) -> dict[str, Requirement]:
    """The lines of constraints.txt that hold for a version of Python, by name."""
    lines = [line for line in (ROOT / 'constraints.txt').read_text().splitlines() if line and not line.startswith('#')]
    there = [Requirement(line) for line in lines]
    held = [pin for pin in there if pin.marker is None or pin.marker.evaluate({'python_version': python})]
    assert len({canonicalize_name(pin.name) for pin in held}) == len(held), 'a distribution is pinned twice'
    return {canonicalize_name(pin.name): pin for pin in held}


def test_a_new_environment_gets_the_stock_packages():
    assert openmmlab({}) == STOCK


def test_a_full_mmcv_is_kept():
    assert openmmlab({'mmcv': '2.1.0'}) == ['mmengine>=0.10.4', 'mmcv', 'mmsegmentation>=1.2.2']


@pytest.mark.parametrize('there', [['onedl-mmengine'], ['onedl-mmcv'], ['onedl-mmsegmentation'], FORKS])
def test_an_environment_with_a_fork_gets_forks_only(there):
    assert openmmlab(dict.fromkeys(there, '1.0')) == FORKS


@pytest.mark.parametrize('there', [['mmengine'], ['mmcv-lite'], ['mmengine', 'mmsegmentation']])
def test_stock_packages_stay_stock(there):
    assert openmmlab(dict.fromkeys(there, '1.0')) == STOCK


def test_a_torch_built_for_numpy_1_keeps_numpy_1():
    assert 'numpy<2' in openmmlab({'torch': '2.2.2+cu121'})
    assert 'numpy<2' not in openmmlab({'torch': '2.3.0'})


def test_no_requirement_can_replace_a_torch():
    bounds = {requirement.name: requirement.specifier for requirement in map(Requirement, SETUP['REQUIREMENTS'])}
    for name in ('torch', 'torchvision'):
        assert all(bound.operator == '>=' for bound in bounds[name])


def test_the_installed_distributions_are_those_of_this_interpreter():
    installed = SETUP['installed_distributions']()
    assert installed['timm'] == environment.installed_version('timm')
    assert 'open-clip-torch' in installed


def test_everything_the_doctor_needs_is_asked_for():
    asked = {canonicalize_name(Requirement(line).name) for line in SETUP['requirements']({})}
    assert {canonicalize_name(name) for name in environment.NEEDED} <= asked


@pytest.mark.parametrize('python', ['3.10', '3.11', '3.12', '3.13', '3.14'])
def test_every_requirement_has_a_tested_version_within_its_bounds(python):
    pinned = pins(python)
    for line in [*SETUP['requirements']({}), *sum(SETUP['EXTRAS'].values(), []), 'pip']:
        requirement = Requirement(line)
        (pin,) = pinned[canonicalize_name(requirement.name)].specifier
        assert pin.operator == '=='
        assert requirement.specifier.contains(pin.version), line


@pytest.mark.parametrize('python', ['3.10', '3.12'])
def test_the_doctor_has_no_objection_to_the_tested_versions(python):
    facts = {name: next(iter(pin.specifier)).version for name, pin in pins(python).items()}
    facts['open_clip_torch'] = facts.pop('open-clip-torch')
    assert environment.problems({**facts, 'python': f'{python}.0'}) == []


def test_the_version_is_that_of_the_package():
    version = runpy.run_path(str(ROOT / 'tpa_mmseg' / 'version.py'))['__version__']
    assert sys.modules['tpa_mmseg'].__version__ == version
