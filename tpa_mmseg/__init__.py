"""TPA, test-time prototype adaptation, as an extension of MMSegmentation. Importing it registers everything."""

import sys

from .version import __version__

__all__ = ['__version__']

# ``python -m tpa_mmseg.doctor`` imports this package before the doctor itself, and has to run where the imports below
# fail. The interpreter's own arguments are the only sign of it at this point.
if 'tpa_mmseg.doctor' not in getattr(sys, 'orig_argv', ()):
    from . import environment

    environment.check()

    from . import compat

    compat.install()

    # The packages that put their classes into mmseg's registries.
