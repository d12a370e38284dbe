"""A local page: drop pictures, type classes, move the settings of TPA and see what changes."""

from .server import Address, serve

__all__ = ['Address', 'serve']
