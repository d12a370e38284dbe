"""Data sets, pools without annotations, and the pipeline steps that name what is wrong with an image."""

from .pool import Pool, PoolOptions, build_pool
from .transforms import LoadImage, LoadLabels, SafeResize, harden_pipeline

__all__ = ['LoadImage', 'LoadLabels', 'Pool', 'PoolOptions', 'SafeResize', 'build_pool', 'harden_pipeline']
