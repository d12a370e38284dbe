"""TPA, test-time prototype adaptation, as an extension of MMSegmentation. Importing it registers everything."""

from __future__ import annotations

import warnings
from typing import Any

from .version import __version__

__all__ = ['Segmenter', '__version__', 'import_error', 'segment']

#: Why nothing could be registered; None if everything was. Without OpenMMLab, core, layers and catalog still work.
import_error: Exception | None = None

try:
    from . import registration  # noqa: F401
except Exception as error:  # a broken environment can raise almost anything, and the doctor has to run in it
    import_error = error
    if getattr(error, 'name', None) not in ('mmengine', 'mmcv', 'mmseg'):  # these are simply not installed
        warnings.warn(f'tpa_mmseg registered nothing ({error}). Run: tpa doctor --imports', stacklevel=2)


def __getattr__(name: str) -> Any:
    """Loads the interface for your own images when it is first asked for."""
    if name not in ('Segmenter', 'segment'):
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    if import_error is not None:
        raise ImportError(f'tpa_mmseg.{name} cannot be used here ({import_error})') from import_error
    from . import apis

    return getattr(apis, name)
