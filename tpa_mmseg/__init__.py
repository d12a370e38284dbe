"""TPA, test-time prototype adaptation, as an extension of MMSegmentation. Importing it registers everything."""

from . import compat
from .version import __version__

compat.install()

__all__ = ['__version__']
