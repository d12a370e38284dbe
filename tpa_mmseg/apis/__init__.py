"""Segment your own images with your own classes: one function, and an object that keeps the models."""

from .adapted import CaveatWarning, SkippedWarning
from .images import ImageSource, Skipped
from .options import host_names
from .result import ClassArea, ClassCoverage, Segmentation, Segmentations, TPASettings
from .segment import segment
from .segmenter import Segmenter
from .video import Video
