"""The words of the miniature world: what its CLIP calls the things and grounds of a scene."""

from __future__ import annotations

#: The names of each class, its own name first.
WORDS = {
    'grass': ('grass', 'lawn', 'meadow'),
    'water': ('water', 'sea', 'lake'),
    'sand': ('sand', 'beach', 'desert'),
    'brick': ('brick', 'bricks', 'wall'),
    'wood': ('wood', 'plank', 'timber'),
    'cloud': ('cloud', 'sky'),
    'zebra': ('zebra', 'stripes'),
    'ladybug': ('ladybug', 'beetle'),
    'chessboard': ('chessboard', 'checkerboard'),
    'flower': ('flower', 'blossom', 'daisy'),
    'wheel': ('wheel', 'tire'),
    'target': ('target', 'bullseye'),
    'star': ('star', 'starfish'),
    'net': ('net', 'mesh', 'grid'),
}
