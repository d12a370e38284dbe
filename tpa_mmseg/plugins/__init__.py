"""Plug-ins, which change a host from inside, and wrappers, which adapt a host at test time."""

from .fsa import FSA
from .lame import LAME
from .mlmp import MLMP
from .resclip import ResCLIP
from .t3a import T3A
from .tent import TENT
