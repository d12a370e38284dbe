"""``python -m tpa_mmseg.doctor``: what is installed, on which devices, what is wrong, and what to do about it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import sys
import warnings
from pathlib import Path

from . import environment
from .environment import Problem
from .version import __version__

Row = tuple[str, str, str]  # what it is, its version, a note

# Distribution -> what it is for.
OPTIONAL = {
    'mmdet': 'query models such as Mask2Former as hosts',
    'segment-anything-py': 'SAM inside a host',
    'pytest': 'make test',
    'hypothesis': 'make test',
    'ruff': 'make lint',
}
# What has to import, in an order in which the first failure explains those after it.
_MODULES = ('torch', 'torchvision', 'cv2', 'timm', 'open_clip', 'mmengine', 'mmcv', 'mmseg.models')


def version_rows(facts: dict[str, str]) -> list[Row]:
    """One row for Python, for everything that is needed, and for what is optional."""
    rows = [('python', facts['python'], platform.platform())]
    rows += [(name, _shown(facts, name), _build(facts, name)) for name in environment.NEEDED]
    for module in environment.PROVIDERS:
        name = environment.provider(facts, module)
        rows.append((name or module, _shown(facts, name), _mmcv_flavour(name) if name and module == 'mmcv' else ''))
    for name, purpose in OPTIONAL.items():
        rows.append((name, environment.installed_version(name) or '-', f'optional: {purpose}'))
    return rows


def import_problems() -> list[Problem]:
    """Imports everything for real: metadata knows nothing of a missing system library or a foreign binary."""
    for module in _MODULES:
        try:
            if module == 'mmseg.models':
                from . import compat

                compat.install()
            importlib.import_module(module)
        except Exception as error:
            lines = str(error).strip().splitlines() or ['no reason given']
            return [Problem(f'{module} does not import ({type(error).__name__}: {lines[0]}): reinstall its package')]
    return _broken_ops()


def device_rows() -> list[Row]:
    """One row per device that PyTorch can use."""
    import torch

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter('always')
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count:
        return [('device', f'cuda:{index}', torch.cuda.get_device_name(index)) for index in range(count)]
    why = str(heard[0].message).splitlines()[0] if heard else 'no CUDA device was found'
    return [('device', 'cpu', f'{os.cpu_count()} cores; {why}')]


def main() -> int:
    """Prints the table and the verdict. Returns the exit code."""
    facts = environment.survey()
    rows = [('tpa_mmseg', __version__, str(Path(__file__).parent)), *version_rows(facts)]
    found = environment.problems(facts)
    if not any(problem.fatal for problem in found):
        found += import_problems()
    if 'torch' in sys.modules:
        rows += device_rows()
    width = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, version, note in rows:
        print(f'{name:<{width[0]}}  {version:<{width[1]}}  {note}'.rstrip())
    print()
    for problem in found:
        print(f'problem: {problem.sentence}')
    if not found:
        print('everything needed is here')
    return 1 if found else 0


def _shown(facts: dict[str, str], name: str | None) -> str:
    """The version as the table shows it."""
    if name not in facts:
        return 'missing'
    return facts[name] or 'unknown'


def _build(facts: dict[str, str], name: str) -> str:
    """Whether PyTorch or torchvision can use a GPU at all."""
    version = facts.get(name, '')
    if name not in ('torch', 'torchvision') or '+' not in version:
        return ''
    return 'CPU build' if version.endswith('+cpu') else 'GPU build'


def _mmcv_flavour(name: str) -> str:
    """Which of the three mmcvs this is, and whether it has compiled ops."""
    flavour = {'mmcv': 'full', 'mmcv-lite': 'lite', 'onedl-mmcv': 'onedl fork'}[name]
    return f'{flavour}, {"with" if _ops_file() else "without"} compiled ops'


def _ops_file() -> Path | None:
    spec = importlib.util.find_spec('mmcv')
    folders = spec.submodule_search_locations if spec else None
    return next((file for folder in folders or () for file in Path(folder).glob('_ext.*')), None)


def _broken_ops() -> list[Problem]:
    """Compiled ops that are there but do not load: ``compat`` goes on without them, but a model may need one."""
    from .compat import MissingOps

    ops = sys.modules.get('mmcv._ext')
    if not isinstance(ops, MissingOps) or _ops_file() is None:
        return []
    sentence = (
        f"mmcv's compiled ops do not load with this PyTorch ({ops.reason}): reinstall the full mmcv for it, "
        'or go on without ops if your models call none'
    )
    return [Problem(sentence, fatal=False)]


if __name__ == '__main__':
    sys.exit(main())
