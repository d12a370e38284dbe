#!/usr/bin/env python
"""Checks the environment: what is installed, on which devices, what does not fit together, and how to fix it.

It runs where nothing else can be imported.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import platform
import re
import sys
import warnings
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

#: Module -> the distributions that provide it. Two of them at once overwrite each other's files.
PROVIDERS = {
    'mmengine': ('mmengine', 'onedl-mmengine'),
    'mmcv': ('mmcv-lite', 'mmcv', 'onedl-mmcv'),
    'mmseg': ('mmsegmentation', 'onedl-mmsegmentation'),
}
# What has to import, in an order in which the first failure explains those after it. The first two are quick, and those
# that most often miss a library of the system.
_MODULES = ('torch', 'cv2', 'torchvision', 'timm', 'open_clip', 'mmengine', 'mmcv', 'tpa_mmseg', 'mmseg.models')
_QUICK = 2
_PAIR = '`pip uninstall -y torch torchvision` and then install both at once and from the same source'


def survey() -> dict[str, str]:
    """Returns the installed distributions: normalized name -> version."""
    found = {}
    for each in metadata.distributions():
        name = each.metadata['Name']
        if name:  # what an interrupted uninstall leaves behind has none
            # The first one found is the one that is imported.
            found.setdefault(normalized(name), each.version)
    return found


def normalized(name: str) -> str:
    """Returns the spelling by which distributions are compared."""
    return re.sub(r'[-_.]+', '-', name).lower()


def requirements() -> list[str]:
    """Returns the requirements of tpa_mmseg, extras included, as its own metadata has them."""
    try:
        return metadata.requires('tpa_mmseg') or []
    except metadata.PackageNotFoundError:
        return []


def problems(facts: dict[str, str], required: list[str]) -> list[str]:
    """Returns everything that is known not to work in an environment, one message each.

    Args:
        facts: Its distributions, see :func:`survey`.
        required: What tpa_mmseg requires, see :func:`requirements`.
    """
    rules = (_torch_pair, _numpy_abi, _overwritten, _mmcv_range, _pkg_resources)
    return [*_unmet(facts, required), *(text for rule in rules for text in rule(facts))]


def release(version: str) -> tuple[int, ...]:
    """Returns the first three numbers of a version: ``'2.14.1+cu130'`` -> ``(2, 14, 1)``."""
    return tuple(int(number) for number in re.findall(r'\d+', version.partition('+')[0])[:3])


def _unmet(facts: dict[str, str], required: list[str]) -> list[str]:
    missing, found = [], []
    absent = [module for module, names in PROVIDERS.items() if not any(name in facts for name in names)]
    try:
        from packaging.requirements import Requirement
    except ImportError:  # without it the requirements cannot be read
        missing, required = ['packaging'], []
    for line in required:
        each = Requirement(line)
        if each.marker is not None and not each.marker.evaluate({'extra': ''}):
            continue
        version = facts.get(normalized(each.name))
        if version is None:
            missing.append(each.name)
        elif not each.specifier.contains(version, prereleases=True):
            found.append(f"tpa_mmseg needs {each} and this is {version}: `pip install '{each}'`")
    if missing or absent:
        extra = '[lite]' if absent else ''
        found.insert(0, f"Not installed: {', '.join(missing + absent)}. `pip install 'tpa_mmseg{extra}'`")
    return found


def _torch_pair(facts: dict[str, str]) -> list[str]:
    pair = [facts.get('torch', ''), facts.get('torchvision', '')]
    torch, vision = map(release, pair)
    text = f'torch {pair[0]} and torchvision {pair[1]} were not made for each other: {_PAIR}'
    # torchvision 0.15 came with torch 2.0, 0.16 with 2.1, and so on.
    alike = not (torch and vision and (torch[0], vision[0]) == (2, 0)) or vision[1] - torch[1] == 15
    return [] if alike and not ('+cpu' in pair[0] and '+cu' in pair[1]) else [text]


def _numpy_abi(facts: dict[str, str]) -> list[str]:
    torch, numpy = facts.get('torch', ''), facts.get('numpy', '')
    if () < release(torch) < (2, 3) and release(numpy) >= (2,):
        return [f"torch {torch} was built for numpy 1 and this is numpy {numpy}: `pip install 'numpy<2'`"]
    return []


def _overwritten(facts: dict[str, str]) -> list[str]:
    installed = {module: [name for name in names if name in facts] for module, names in PROVIDERS.items()}
    return [
        f'{" and ".join(names)} are both installed as {module!r} and overwrite each other: '
        f'`pip uninstall -y {" ".join(names)}` and then install the one you want'
        for module, names in installed.items()
        if len(names) > 1
    ]


def _mmcv_range(facts: dict[str, str]) -> list[str]:
    stock = facts.get('mmsegmentation') if 'onedl-mmsegmentation' not in facts else None
    return [
        f'mmsegmentation {stock} refuses {name} {facts[name]}: `pip uninstall -y {name}` and then '
        "`pip install 'mmcv-lite<2.2'`, or a full mmcv 2.1"
        for name in PROVIDERS['mmcv']
        if stock and name in facts and not (2, 0, 0) <= release(facts[name]) < (2, 2)
    ]


def _pkg_resources(facts: dict[str, str]) -> list[str]:
    if release(facts.get('setuptools', '')) >= (82,) and 'mmengine' in facts:
        return [
            f'mmengine {facts["mmengine"]} needs pkg_resources for configs that inherit from a package (mmseg::...), '
            f"and setuptools {facts['setuptools']} has none: `pip install 'setuptools<82'`"
        ]
    return []


def import_problems(everything: bool) -> list[str]:
    """Imports packages: metadata does not show a missing system library or a binary for another PyTorch."""
    for module in _MODULES if everything else _MODULES[:_QUICK]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')  # a failure is reported here
                importlib.import_module(module)
        except Exception as error:
            reason = f'{type(error).__name__}: {(str(error).strip() or "no reason given").splitlines()[0]}'
            return [f'{module} does not import ({reason}): {_PAIR if "torch" in module else "reinstall its package"}']
    if not everything:
        return []
    import tpa_mmseg
    from tpa_mmseg.compat import MissingOps

    if tpa_mmseg.import_error is not None:
        return [f'tpa_mmseg does not import ({tpa_mmseg.import_error}): reinstall it']
    ops = sys.modules.get('mmcv._ext')
    if isinstance(ops, MissingOps) and _ops_file() is not None:
        return [
            f"mmcv's compiled ops do not load with this PyTorch ({ops.reason}): reinstall the full mmcv for it, or "
            'ignore this if your models call none'
        ]
    return []


def _ops_file() -> Path | None:
    folders = getattr(importlib.util.find_spec('mmcv'), 'submodule_search_locations', None) or ()
    return next((file for folder in folders for file in Path(folder).glob('_ext.*')), None)


def table(facts: dict[str, str], required: list[str]) -> dict[str, str]:
    """Returns what is installed, as text for each line of the report."""
    package = importlib.util.find_spec('tpa_mmseg')
    folder = f' ({Path(package.origin).parent})' if package is not None and package.origin else ''
    rows = {'tpa_mmseg': facts.get('tpa-mmseg', 'missing') + folder}
    for module, names in PROVIDERS.items():
        rows[module] = ', '.join(f'{name} {facts[name]}' for name in names if name in facts) or 'missing'
    if importlib.util.find_spec('mmcv') is not None:
        rows['mmcv'] += f', {"with" if _ops_file() else "without"} compiled ops'
    for line in required:
        name, _, extra = re.match(r'([\w.-]+)(.*?extra == .(\w+))?', line).groups()
        if not any(normalized(name) in names for names in PROVIDERS.values()):
            version = facts.get(normalized(name), 'missing')
            rows.setdefault(name, f'{version} (optional: [{extra}])' if extra else version)
    return rows


def machine() -> dict[str, str]:
    """Returns what the installed PyTorch runs on."""
    import torch

    rows = {'system': platform.platform(), 'Python': sys.version.split()[0], 'CPUs': str(os.cpu_count())}
    rows['CUDA'] = f'{torch.version.cuda or "none"}, {"" if torch.cuda.is_available() else "not "}available'
    for number in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(number)
        rows[f'GPU {number}'] = f'{found.name}, {found.total_memory / 2**30:.1f} GB'
    return rows


def diagnose(as_json: bool = False, everything: bool = False) -> int:
    """Prints the report. Returns the exit code: 1 if there are problems.

    Args:
        as_json: As JSON.
        everything: Also import every package.
    """
    facts, required = survey(), requirements()
    found = problems(facts, required) or import_problems(everything)
    rows = table(facts, required)
    if () < release(facts.get('torch', '')) < (2, 10):
        rows['warning'] = 'PyTorch before 2.10 cannot read .pth files safely: only safetensors files are read'
    if not found:
        rows |= machine()
    if as_json:
        print(json.dumps({'installed': rows, 'problems': found}, indent=2))
        return 1 if found else 0
    width = max(map(len, rows))
    for name, text in rows.items():
        print(f'{name:<{width}}  {text}')
    print()
    for text in found:
        print(f'problem: {text}')
    if not found:
        print(f'OK: all requirements are installed and compatible{", and import" * everything}.')
    return 1 if found else 0


def main(argv: Sequence[str] | None = None, prog: str | None = None) -> None:
    parser = argparse.ArgumentParser(prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--json', action='store_true', help='print the report as JSON')
    parser.add_argument('--imports', action='store_true', help='also import every package, which takes a few seconds')
    args = parser.parse_args(argv)
    sys.exit(diagnose(args.json, args.imports))


if __name__ == '__main__':
    main()
