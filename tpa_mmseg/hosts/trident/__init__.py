"""Trident: CLIP spliced by a DINO proxy, mixed by SAM's correlation, and redrawn by SAM."""

from .host import Trident

__all__ = ['Trident']
