"""Hosts: segmentors that predict class probabilities, registered in mmseg's MODELS."""

from .base import Host
from .clip_host import CLIPHost
from .gem import GEM
from .host_features import HostFeatures
from .last_block import CLIP, NACLIP, SCLIP, ClearCLIP, LastBlockHost
from .maskclip import MaskCLIP
from .proxyclip import ProxyCLIP
from .segmentor_host import SegmentorHost
from .trident.host import Trident
