"""Trident: CLIP's values mixed by a DINO proxy and by SAM's correlation, and regions redrawn by SAM."""

from .host import Trident
