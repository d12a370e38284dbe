"""OVSS hosts: segmentors that give class probabilities, registered in mmseg's MODELS."""

# First, because encoders has a CLIP encoder that uses the tower of this package.
from .base import Host
from .clip_host import CLIPHost
from .gem import GEM
from .last_block import CLIP, NACLIP, SCLIP, ClearCLIP, LastBlockHost
from .maskclip import MaskCLIP
from .proxyclip import ProxyCLIP
from .segmentor_host import SegmentorHost
from .trident.host import Trident

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
