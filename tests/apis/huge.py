"""Segments one huge image in a process of its own, and prints that process's peak memory in MB."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch

from tests.helpers.tiny_segmenter import tiny_segmenter


def peak_megabytes() -> int:
    """Not ``ru_maxrss``: a process starts with that of the one it was started from, here a worker of the tests."""
    return int(re.search(r'VmHWM:\s+(\d+) kB', Path('/proc/self/status').read_text())[1]) // 1024


if __name__ == '__main__':
    torch.set_num_threads(1)
    path, out = map(Path, sys.argv[1:])
    result = tiny_segmenter('cat, dog, tree, house, car, sky, road, wall').segment(path)
    result.save(out)
    print(result.labels.shape, peak_megabytes(), sep='\n')
