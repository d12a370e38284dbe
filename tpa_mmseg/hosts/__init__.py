"""OVSS hosts: segmentors that give class probabilities, registered in mmseg's MODELS."""

# First, because encoders has a CLIP encoder that uses the tower of this package.
from .. import encoders  # noqa: F401, I001
from ..encoders.clip import CLIPEncoder  # noqa: F401
from .base import Host
from .clip_host import CLIPHost
from .clip_hosts import CLIP, NACLIP, SCLIP, ClearCLIP, LastBlockHost
from .gem import GEM
from .maskclip import MaskCLIP
from .proxyclip import ProxyCLIP
from .segmentor_host import SegmentorHost
from .trident import Trident

__all__ = [
    'CLIP',
    'GEM',
    'NACLIP',
    'SCLIP',
    'CLIPHost',
    'ClearCLIP',
    'Host',
    'LastBlockHost',
    'MaskCLIP',
    'ProxyCLIP',
    'SegmentorHost',
    'Trident',
]
