"""Imports every package that registers classes with MMSegmentation. Applications are not among them."""

# isort: off
from . import compat

# Before anything of mmseg is imported.
compat.install()

from . import datasets, encoders, engine, evaluation, hosts, miniature, plugins, segmentors  # noqa: E402, F401
