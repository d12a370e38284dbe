"""The few lines that let stock OpenMMLab run on current Python and PyTorch. Installed before mmseg is imported."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import pkgutil
import sys
import types
import warnings

from .errors import TPAError

# What stock OpenMMLab says about itself while a model is built or a config is read: (start of the message, module).
# None of it is in the hands of someone who tests a model; everything else these modules say is still heard.
_NOISE = (
    ('``build_loss`` would be deprecated soon', 'mmseg.models.builder'),
    ('Default ``avg_non_ignore`` is False', 'mmseg.models.losses.cross_entropy_loss'),
    ('pkg_resources is deprecated as an API', 'mmengine.utils.package_utils'),
    ('pkg_resources is deprecated as an API', 'importlib'),  # mmengine reloads it
)


def install() -> None:
    """Patches what is broken in this environment, and nothing else. Safe to call twice."""
    _quiet_noise()
    _restore_find_loader()
    _stand_in_for_compiled_ops()


def _quiet_noise() -> None:
    for message, module in _NOISE:
        warnings.filterwarnings('ignore', message=message, module=module.replace('.', r'\.'))


def _restore_find_loader() -> None:
    """mmengine 0.10.7 and mmcv call ``pkgutil.find_loader``, which Python 3.14 removed."""
    if hasattr(pkgutil, 'find_loader'):
        return

    def find_loader(fullname: str):
        spec = importlib.util.find_spec(fullname)
        return spec and spec.loader

    pkgutil.find_loader = find_loader


class MissingOps(types.ModuleType):
    """Stands in for ``mmcv._ext``: mmseg imports ops it may never call, so only a call is an error."""

    def __init__(self, reason: str) -> None:
        super().__init__('mmcv._ext')
        # pkgutil.find_loader, which the Runner calls, fails on a module without a spec; a spec without a loader
        # tells mmengine, truly, that there are no compiled ops.
        self.__spec__ = importlib.machinery.ModuleSpec('mmcv._ext', None)
        self.reason = reason

    def __getattr__(self, name: str):
        if name.startswith('__'):
            raise AttributeError(name)

        def missing(*args, **kwargs):
            raise TPAError(
                f"this model calls mmcv's compiled op {name!r}, which is not available here ({self.reason}): "
                'install a full mmcv that was built for this PyTorch'
            )

        return missing


def _stand_in_for_compiled_ops() -> None:
    """Lets ``import mmseg.models`` work where mmcv has no compiled ops, or has ops built for another PyTorch."""
    import torch  # noqa: F401  (the ops link against its libraries)

    try:
        importlib.import_module('mmcv._ext')
    except ImportError as error:
        if error.name == 'mmcv':
            raise
        sys.modules['mmcv._ext'] = MissingOps(str(error))
