"""A local page: upload images, enter class names, move the settings of TPA and see what changes."""

from .server import serve
