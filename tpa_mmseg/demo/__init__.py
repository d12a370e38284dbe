"""A small painted data set and a small segmentor trained on it in seconds: what `make demo` and the tests run on."""

from .scenes import CLASSES, PALETTE, paint_scene, write_scenes
from .train import train_host

__all__ = ['CLASSES', 'PALETTE', 'paint_scene', 'train_host', 'write_scenes']
