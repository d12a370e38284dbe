"""Figures: what TPA changed in an image, and the anchors of the classes."""

from ..datasets.palette import DIFFERENCE_COLORS, class_palette, distinct_colors
from .anchors import anchor_figure, draw_anchors
from .images import read_image
from .layout import Legend, LegendEntry, Panel, compose, panel_size
from .names import figure_names
from .panels import Difference, colorize, comparison, difference_map
