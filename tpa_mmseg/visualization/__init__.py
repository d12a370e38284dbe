"""Pictures: what TPA changed in an image, and where a class finds its anchors. Pillow and NumPy only."""

from ..datasets.palette import class_palette, distinct_colors
from .anchors import anchor_picture, draw_anchors
from .images import read_image
from .layout import Entry, Legend, Panel, compose, panel_size
from .names import picture_names
from .panels import DIFFERENCE_COLORS, Difference, colorize, comparison, difference_map

__all__ = [
    'DIFFERENCE_COLORS',
    'Difference',
    'Entry',
    'Legend',
    'Panel',
    'anchor_picture',
    'class_palette',
    'colorize',
    'comparison',
    'compose',
    'difference_map',
    'draw_anchors',
    'panel_size',
    'picture_names',
    'read_image',
    'distinct_colors',
]
