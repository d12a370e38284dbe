"""Datasets, pools of images without annotations, and pipeline steps with clear errors."""

from .benchmarks import COCOObjectDataset, PascalContext59Dataset, PascalContext60Dataset, PascalVOC20Dataset
from .pool import Pool, PoolOptions, build_pool
from .samplers import WholeBatchSampler
from .transforms import LoadImage, LoadLabels, SafeResize, ScoreAtThisSize, add_read_checks

__all__ = [
    'COCOObjectDataset',
    'LoadImage',
    'LoadLabels',
    'PascalContext59Dataset',
    'PascalContext60Dataset',
    'PascalVOC20Dataset',
    'Pool',
    'PoolOptions',
    'SafeResize',
    'ScoreAtThisSize',
    'WholeBatchSampler',
    'build_pool',
    'add_read_checks',
]
