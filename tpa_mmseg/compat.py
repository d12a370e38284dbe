"""The few lines that let stock OpenMMLab run on a current PyTorch without compiled ops. Imported before mmseg."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types


class _MissingOps(types.ModuleType):
    """Stands in for ``mmcv._ext``: mmseg imports ops it may never call, so only a call is an error."""

    def __getattr__(self, name: str):
        if name.startswith('__'):
            raise AttributeError(name)

        def missing(*args, **kwargs):
            raise RuntimeError(f'mmcv-lite has no compiled op {name!r}: install the full mmcv to use this model')

        return missing


def install() -> None:
    """Lets ``import mmseg.models`` work on mmcv-lite. Does nothing where the full mmcv is installed."""
    if 'mmcv._ext' in sys.modules or importlib.util.find_spec('mmcv._ext') is not None:
        return
    module = _MissingOps('mmcv._ext')
    # pkgutil.find_loader, which the Runner calls, fails on a module without a spec.
    module.__spec__ = importlib.machinery.ModuleSpec('mmcv._ext', None)
    sys.modules['mmcv._ext'] = module
