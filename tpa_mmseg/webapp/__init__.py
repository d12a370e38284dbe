"""A local page: drop images, enter class names, move the settings of TPA and see what changes."""

from .server import Address, serve
