"""Describes the package to pip. What it requires depends on what the environment has: see ``requirements``."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
# Read as a file: the package itself cannot be imported before what it requires is installed.
ENVIRONMENT = runpy.run_path(str(ROOT / 'tpa_mmseg' / 'environment.py'))
PROVIDERS, release = ENVIRONMENT['PROVIDERS'], ENVIRONMENT['release']

# Lower bounds only, so that the torch of an environment stays. constraints.txt has the tested versions.
REQUIREMENTS = [
    'torch>=2.0',
    'torchvision>=0.15',
    'numpy',
    'opencv-python',
    'pillow',
    'pyyaml',
    'scipy',
    'open_clip_torch>=3.0',
    'timm>=1.0',
    'huggingface_hub',
    'safetensors',
    'tqdm',
    'wcwidth',
    # mmsegmentation needs these two and does not say so.
    'ftfy',
    'regex',
    # mmengine needs distutils, which Python 3.12 and later have from setuptools, and pkg_resources, gone in 82.
    'setuptools<82',
]
BOUNDS = {'mmengine': '>=0.10.4', 'mmcv-lite': '>=2.0.0,<2.2', 'mmsegmentation': '>=1.2.2'}
# Class names, weights and tables; and, behind the links in .mim, the configs and tools for those who have no checkout.
PACKAGE_DATA = [f'**/*.{ending}' for ending in ('json', 'txt', 'safetensors', 'yaml', 'yml', 'css', 'js')]
PACKAGE_DATA += [f'.mim/**/*.{ending}' for ending in ('py', 'sh', 'yml')]
EXTRAS = {
    'sam': ['segment-anything-py'],  # SAM's decoder, for the refinement in Trident
    'webapp': ['nicegui>=3'],  # the local page
    'test': ['pytest', 'hypothesis', 'ruff'],
}


def requirements(installed: dict[str, str]) -> list[str]:
    """What to ask pip for, given the distributions that are installed: name -> version.

    Several distributions provide the modules mmengine, mmcv and mmseg, and pip does not know it: asked for mmcv-lite
    where the full mmcv or a fork is installed, it writes one over the other. So the distribution that is there is the
    one to ask for. What is not there comes from the forks where there is a fork, and is stock everywhere else.
    """
    forks = any(name.startswith('onedl-') for names in PROVIDERS.values() for name in names if name in installed)
    asked = []
    for names in PROVIDERS.values():
        default = names[-1] if forks else names[0]
        name = next((name for name in names if name in installed), default)
        asked.append(name + BOUNDS.get(name, ''))
    # A current opencv-python brings numpy 2, on which a torch built for numpy 1 does not work.
    if () < release(installed.get('torch', '')) < (2, 3):
        asked.append('numpy<2')
    return REQUIREMENTS + asked


def installed_distributions() -> dict[str, str]:
    """The distributions in the environment that pip installs into: name -> version.

    pip builds in isolation and hides them from this process, but only by environment variables: the same interpreter
    started without those (-E) sees all of them, those of the user and of the system too.
    """
    code = (
        'import importlib.metadata as metadata, json\n'
        'print(json.dumps([(found.metadata["Name"], found.version) for found in metadata.distributions()]))'
    )
    answer = subprocess.run([sys.executable, '-E', '-c', code], stdout=subprocess.PIPE, text=True, check=True)
    return {re.sub(r'[-_.]+', '-', name).lower(): version for name, version in json.loads(answer.stdout) if name}


if __name__ == '__main__':
    readme = ROOT / 'README.md'
    setup(
        name='tpa_mmseg',
        version=runpy.run_path(str(ROOT / 'tpa_mmseg' / 'version.py'))['__version__'],
        description='Test-time prototype adaptation for open-vocabulary segmentation, as an MMSegmentation extension',
        long_description=readme.read_text(encoding='utf-8') if readme.exists() else '',
        long_description_content_type='text/markdown',
        author='The tpa_mmseg authors',
        license='Apache-2.0',
        license_files=['LICENSE'],
        python_requires='>=3.10',
        packages=find_packages(include=['tpa_mmseg', 'tpa_mmseg.*']),
        package_data={'tpa_mmseg': PACKAGE_DATA},
        install_requires=requirements(installed_distributions()),
        extras_require=EXTRAS,
        zip_safe=False,
    )
