"""The words of the miniature world."""

#: The words for each class, its own name first.
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
