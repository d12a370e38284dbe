"""Frozen dense encoders, whose features prototypes are made of."""

from .base import Encoder, PixelNormalization
from .clip_encoder import CLIPEncoder
from .timm_encoder import TimmEncoder
