"""TPASegmentor: a host with Test-time Prototype Adaptation around it."""

from .data_preprocessor import TPADataPreProcessor
from .tpa_segmentor import TPASegmentor

__all__ = ['TPADataPreProcessor', 'TPASegmentor']
