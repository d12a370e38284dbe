"""Segments one huge image in a process of its own, and prints that process's peak memory in MB."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import torch

from tests.helpers.tiny_segmenter import tiny_segmenter

if __name__ == '__main__':
    torch.set_num_threads(1)
    path, out = map(Path, sys.argv[1:])
    result = tiny_segmenter('cat, dog, tree, house, car, sky, road, wall').segment(path)
    result.save(out)
    print(result.labels.shape, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, sep='\n')
