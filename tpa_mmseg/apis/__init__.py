"""Own pictures, own classes: one function, and an object that keeps the networks."""

from .choice import MINIATURE, host_names
from .inputs import Skipped
from .result import Area, Coverage, Result, Results, coverage
from .segment import segment
from .segmenter import Segmenter, SkippedWarning
from .video import Video

__all__ = [
    'MINIATURE',
    'Area',
    'Coverage',
    'Result',
    'Results',
    'Segmenter',
    'Skipped',
    'SkippedWarning',
    'Video',
    'coverage',
    'host_names',
    'segment',
]
