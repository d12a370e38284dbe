"""What is installed, told by metadata alone, and what of it cannot work together.

Standard library only and quick: it runs at every ``import tpa_mmseg``, in the doctor where nothing else imports, and in
setup.py before anything is installed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Import name -> the distributions that provide it. Two of them at once overwrite each other's files.
PROVIDERS = {
    'mmengine': ('mmengine', 'onedl-mmengine'),
    'mmcv': ('mmcv-lite', 'mmcv', 'onedl-mmcv'),
    'mmseg': ('mmsegmentation', 'onedl-mmsegmentation'),
}
# Distribution -> import name.
NEEDED = {
    'torch': 'torch',
    'torchvision': 'torchvision',
    'numpy': 'numpy',
    'opencv-python': 'cv2',
    'pillow': 'PIL',
    'open_clip_torch': 'open_clip',
    'timm': 'timm',
    'safetensors': 'safetensors',
    'ftfy': 'ftfy',
    'regex': 'regex',
    'rich': 'rich',
    'setuptools': 'setuptools',
}


class Problem(NamedTuple):
    """One thing that is wrong with the environment.

    Attributes:
        sentence: What is wrong and what to do about it.
        fatal: Whether nothing works because of it. The rest works until someone meets the broken part.
    """

    sentence: str
    fatal: bool = True


def survey() -> dict[str, str]:
    """The facts: distribution -> version, for Python and every distribution that matters here and is installed.

    PyTorch and torchvision carry their build as a local label (``2.14.1+cu130``, ``2.13.0+cpu``). The version is empty
    for a package that can be imported but has no metadata, such as a checkout on the PYTHONPATH.
    """
    modules = {name: module for module, names in PROVIDERS.items() for name in names}
    facts = {name: version for name in (*modules, *NEEDED) if (version := installed_version(name)) is not None}
    for module, names in PROVIDERS.items():
        if not any(name in facts for name in names) and _importable(module):
            facts[names[0]] = ''
    for name, module in NEEDED.items():
        # cv2, for one, has several distributions.
        if name not in facts and _importable(module):
            facts[name] = ''
    for name in ('torch', 'torchvision'):
        if name in facts:
            facts[name] = _with_build(name, facts[name])
    facts['python'] = '.'.join(map(str, sys.version_info[:3]))
    return facts


def problems(facts: dict[str, str]) -> list[Problem]:
    """Everything that is known not to work in an environment with these facts (see ``survey``)."""
    if release(facts['python']) < (3, 10):
        # Whatever else is wrong, another Python has other packages.
        return [Problem(f'tpa_mmseg needs Python 3.10 or later and this is {facts["python"]}: use a newer Python')]
    rules = (_missing, _torch_pair, _numpy_abi, _overwritten, _mmcv_range, _pkg_resources)
    return [problem for rule in rules for problem in rule(facts)]


def check() -> None:
    """Refuses an environment in which nothing can work, and warns of one in which something cannot.

    Raises:
        ImportError: With one sentence that says what to do.
    """
    found = problems(survey())
    fatal = [problem.sentence for problem in found if problem.fatal]
    if fatal:
        more = f' (and {len(fatal) - 1} more: python -m tpa_mmseg.doctor)' if len(fatal) > 1 else ''
        raise ImportError(fatal[0] + more)
    for problem in found:
        warnings.warn(problem.sentence, stacklevel=3)


def release(version: str) -> tuple[int, ...]:
    """The first three numbers of a version, () where it is unknown: ``'2.14.1+cu130'`` -> ``(2, 14, 1)``."""
    return tuple(int(number) for number in re.findall(r'\d+', version.partition('+')[0])[:3])


def provider(facts: dict[str, str], module: str) -> str | None:
    """The installed distribution that provides one of the modules of ``PROVIDERS``."""
    return next(iter(_providers(facts, module)), None)


def _providers(facts: dict[str, str], module: str) -> list[str]:
    return [name for name in PROVIDERS[module] if name in facts]


def installed_version(name: str) -> str | None:
    """The version of a distribution, None where it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _importable(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    # An uninstalled package may leave an empty folder behind, which Python takes for a namespace without an origin.
    return spec is not None and spec.origin is not None


def _with_build(package: str, version: str) -> str:
    """Adds the build label from ``<package>/version.py``, which is read and not run: a broken pair does not import."""
    spec = importlib.util.find_spec(package)
    file = Path(spec.origin).with_name('version.py') if spec and spec.origin else None
    if file is None or not file.is_file():
        return version
    text = file.read_text(encoding='utf-8')
    literal = {key: value for key, value in re.findall(r"^(\w+)\b[^=\n]*= *'?([^'\n]*)", text, re.MULTILINE)}
    full = literal.get('__version__', version)
    if '+' in full or package != 'torch':
        return full
    if re.fullmatch(r'[\d.]+', literal.get('cuda', '')):
        return f'{full}+cu{literal["cuda"].replace(".", "")}'
    return f'{full}+cpu' if literal.get('cuda') == literal.get('hip') == 'None' else full


def _missing(facts: dict[str, str]) -> Iterator[Problem]:
    absent = [name for name in NEEDED if name not in facts]
    absent += [names[0] for module, names in PROVIDERS.items() if provider(facts, module) is None]
    if absent:
        yield Problem(
            f'{", ".join(absent)} {"is" if len(absent) == 1 else "are"} not installed: '
            'run `pip install -e .` in the folder of tpa_mmseg'
        )


def _torch_pair(facts: dict[str, str]) -> Iterator[Problem]:
    torch, vision = facts.get('torch', ''), facts.get('torchvision', '')
    pair = f'torch {torch} and torchvision {vision}'
    remedy = '`pip uninstall -y torch torchvision` and then install both at once and from the same source'
    if '+cpu' in torch and '+cu' in vision:
        yield Problem(f'{pair} do not fit together, one is built for the CPU and the other for CUDA: {remedy}')
        return
    one, other = release(torch), release(vision)
    # torchvision 0.15 came with torch 2.0, 0.16 with 2.1, and so on.
    if one and other and (one[0], other[0]) == (2, 0) and other[1] - one[1] != 15:
        yield Problem(f'{pair} were not made for each other: {remedy}')


def _numpy_abi(facts: dict[str, str]) -> Iterator[Problem]:
    torch, numpy = facts.get('torch', ''), facts.get('numpy', '')
    if () < release(torch) < (2, 3) and release(numpy) >= (2,):
        yield Problem(f"torch {torch} was built for numpy 1 and this is numpy {numpy}: `pip install 'numpy<2'`")


def _overwritten(facts: dict[str, str]) -> Iterator[Problem]:
    for module in PROVIDERS:
        there = _providers(facts, module)
        if len(there) > 1:
            yield Problem(
                f'{" and ".join(there)} are both installed as {module!r} and overwrite each other: '
                f'`pip uninstall -y {" ".join(there)}` and then install the one you want',
                # mmcv and mmcv-lite of one version have the same Python files.
                fatal=len({facts[name] for name in there}) > 1,
            )


def _mmcv_range(facts: dict[str, str]) -> Iterator[Problem]:
    there = _providers(facts, 'mmcv')
    versions = {facts[name] for name in there}
    if 'mmsegmentation' not in facts or 'onedl-mmsegmentation' in facts or len(versions) != 1 or '' in versions:
        return
    if not (2, 0, 0) <= release(facts[there[0]]) < (2, 2):
        yield Problem(
            f'mmsegmentation {facts["mmsegmentation"]} refuses {there[0]} {facts[there[0]]}: '
            f"`pip uninstall -y {' '.join(there)}` and then `pip install 'mmcv-lite<2.2'`, or a full mmcv 2.1"
        )


def _pkg_resources(facts: dict[str, str]) -> Iterator[Problem]:
    if release(facts.get('setuptools', '')) >= (82,) and 'mmengine' in facts:
        yield Problem(
            f'mmengine {facts["mmengine"]} needs pkg_resources for configs that inherit from a package '
            f"(mmseg::...), and setuptools {facts['setuptools']} has none: `pip install 'setuptools<82'`",
            fatal=False,
        )
