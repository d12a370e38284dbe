"""Plug-ins and baselines: methods that change a host from inside, or adapt it at test time."""

from .fsa import FSA
from .lame import LAME
from .mlmp import MLMP
from .resclip import ResCLIP
from .t3a import T3A
from .tent import TENT

__all__ = ['FSA', 'LAME', 'MLMP', 'T3A', 'TENT', 'ResCLIP']
