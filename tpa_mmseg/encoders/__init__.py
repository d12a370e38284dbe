"""Frozen dense encoders: the source of the features that prototypes are made of."""

from .base import Encoder, Normalisation
from .timm_encoder import TimmEncoder

__all__ = ['Encoder', 'Normalisation', 'TimmEncoder']
