"""Pictures: what TPA changed in an image, and where a class finds its anchors. Pillow and NumPy only."""

from .anchors import anchor_picture, draw_anchors
from .colours import class_colours, separated_colours
from .images import read_image
from .layout import Entry, Legend, Panel, compose, panel_size
from .names import picture_names
from .panels import DIFFERENCE_COLOURS, Difference, colourise, comparison, difference_map

__all__ = [
    'DIFFERENCE_COLOURS',
    'Difference',
    'Entry',
    'Legend',
    'Panel',
    'anchor_picture',
    'class_colours',
    'colourise',
    'comparison',
    'compose',
    'difference_map',
    'draw_anchors',
    'panel_size',
    'picture_names',
    'read_image',
    'separated_colours',
]
