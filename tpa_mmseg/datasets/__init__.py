"""Data sets, pools without annotations, and the pipeline steps that name what is wrong with an image."""

from .benchmarks import COCOObjectDataset, PascalContext59Dataset, PascalContext60Dataset, PascalVOC20Dataset
from .pool import Pool, PoolOptions, build_pool
from .protocol import ScoreAtThisSize
from .transforms import LoadImage, LoadLabels, SafeResize, harden_pipeline
from .whole_batches import WholeBatchSampler

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
    'harden_pipeline',
]
