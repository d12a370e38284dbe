"""Datasets, pools of images without annotations, and pipeline steps with clear errors."""

from .benchmarks import COCOObjectDataset, PascalContext59Dataset, PascalContext60Dataset, PascalVOC20Dataset
from .pool import Pool, PoolOptions, build_pool
from .samplers import WholeBatchSampler
from .transforms import LoadImage, LoadLabels, SafeResize, ScoreAtThisSize, add_read_checks, decode_image
