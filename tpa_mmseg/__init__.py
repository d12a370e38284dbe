"""TPA, test-time prototype adaptation, as an extension of MMSegmentation. Importing it registers everything."""

import sys

from .version import __version__

__all__ = ['Segmenter', '__version__', 'segment']

# ``python -m tpa_mmseg.doctor`` imports this package before the doctor itself, and has to run where the imports below
# fail. The interpreter's own arguments are the only sign of it at this point.
if 'tpa_mmseg.doctor' not in getattr(sys, 'orig_argv', ()):
    from . import environment

    environment.check()

    # Before anything of mmseg is imported.
    from . import compat

    compat.install()

    # What puts its classes into mmseg's registries.
    from . import datasets, encoders, engine, evaluation, hosts, miniature, plugins, segmentors, visualization  # noqa: F401
    from .apis import Segmenter, segment
